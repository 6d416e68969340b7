/** One click: the first example, started so that it can be watched. */

import { source } from "../../api/index.ts";
import type { Example } from "../../api/types.ts";

const DEMO = "rumour";
/** The offline mind decides at once; people who take their time can be watched, and something can happen to them. */
const PACE = "\nmind: {latency: {median_ms: 160}}\n";

/** Make and start a run of a scenario's text. Returns its id. */
export async function startText(text: string): Promise<string> {
  const id = await source.create({ text });
  await source.start(id);
  return id;
}

export async function startDemo(): Promise<string> {
  const examples = await source.listExamples();
  const demo = examples.find((example: Example) => example.name === DEMO) ?? examples[0];
  if (!demo) throw new Error("This server has no examples. Write a scenario instead.");
  return startText(/^mind:/m.test(demo.text) ? demo.text : demo.text + PACE);
}
