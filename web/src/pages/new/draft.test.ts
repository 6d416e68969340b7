import assert from "node:assert/strict";
import { test } from "node:test";
import { glance, nameClaims, nameScenario, quote, startDraft, startEvent, writeYaml } from "./draft.ts";

test("a form writes the scenario that the editor shows", () => {
  const draft = {
    ...startDraft(),
    topic: "the old bridge: closed?",
    worlds: ["twitter", "reddit"],
    claims: [{ text: "The bridge will be closed", truth: "false" as const }],
    events: [{ ...startEvent(["twitter"]), text: "It's closed!", claim: 0 }],
    maxCost: "5",
    model: "openai/gpt-4.1-mini",
  };
  const text = writeYaml(draft);
  assert.match(text, /^topic: "the old bridge: closed\?"$/m);
  assert.match(text, /^worlds: \[twitter, reddit\]$/m);
  assert.match(text, /^ {2}- \{id: will-closed, text: The bridge will be closed, truth: false\}$/m);
  assert.match(text, /- \{post: "It's closed!", by: most_followed, supports: will-closed\}/);
  assert.match(text, /^budget: \{max_cost: 5\}$/m);
  assert.match(text, /^mind: \{kind: language, model: "openai\/gpt-4.1-mini"\}$/m);
});

test("texts that YAML would read as something else are quoted", () => {
  assert.equal(quote("no"), '"no"');
  assert.equal(quote("12:30"), '"12:30"');
  assert.equal(quote("老桥"), '"老桥"');
  assert.equal(quote('say "hi"'), '"say \\"hi\\""');
  assert.equal(quote("the old bridge"), "the old bridge");
});

test("claims in other scripts have ids, and no two the same one", () => {
  const claim = (text: string) => ({ text, truth: "open" as const });
  assert.deepEqual(nameClaims([claim("桥要关闭"), claim("Bridge closes"), claim("The bridge closes")]), [
    "claim-1",
    "bridge-closes",
    "bridge-closes-2",
  ]);
});

test("a card sees where an example plays, and whether it is an experiment", () => {
  assert.deepEqual(glance("population: {count: 120}\nworlds: [twitter]\nexperiment:\n"), {
    worlds: ["twitter"],
    isExperiment: true,
    people: 120,
  });
  assert.deepEqual(glance("worlds:\n  dialogue:\n    turns: 3\n").worlds, ["dialogue"]);
});

test("a name has only letters, digits and dashes", () => {
  assert.equal(nameScenario("the old bridge: closed?"), "the-old-bridge-closed");
  assert.equal(nameScenario("老桥"), "my-study");
  assert.equal(nameScenario("  "), "my-study");
});
