/** A scenario as a form: what was filled in, and the YAML that it stands for, which is the same that the editor shows. */

export interface ClaimDraft {
  text: string;
  truth: "open" | "true" | "false";
}

export interface EventDraft {
  kind: "post" | "broadcast" | "hear" | "see";
  text: string;
  round: number;
  /** The number of a claim of the draft; none is -1. */
  claim: number;
  relation: "supports" | "denies";
}

export interface Draft {
  name: string;
  topic: string;
  people: number;
  worlds: string[];
  rounds: number;
  minutes: number;
  seed: number;
  /** Empty: the offline mind. */
  model: string;
  baseUrl: string;
  claims: ClaimDraft[];
  events: EventDraft[];
  maxCost: string;
}

export const WORLDS: { value: string; text: string; hint: string; few: boolean }[] = [
  { value: "twitter", text: "Twitter", hint: "Short posts, follows, shares", few: false },
  { value: "reddit", text: "Reddit", hint: "Threads, comments, votes", few: false },
  { value: "room", text: "Room", hint: "A few people who hear one another", few: true },
  { value: "dialogue", text: "Dialogues", hint: "Conversations of two", few: true },
];

export function startDraft(): Draft {
  return {
    name: "",
    topic: "",
    people: 100,
    worlds: ["twitter"],
    rounds: 36,
    minutes: 30,
    seed: 1,
    model: "",
    baseUrl: "",
    claims: [],
    events: [],
    maxCost: "",
  };
}

export function startEvent(worlds: string[]): EventDraft {
  const isPlatform = worlds.some((world) => world === "twitter" || world === "reddit");
  return { kind: isPlatform ? "post" : "hear", text: "", round: 0, claim: -1, relation: "supports" };
}

const PLAIN = /^[A-Za-z][A-Za-z0-9 _-]*$/;
const WORDS_OF_YAML = /^(true|false|null|yes|no|on|off|y|n)$/i;

/** A text as YAML reads it back: plain where that is safe, else as JSON, which is YAML too. */
export function quote(text: string): string {
  const trimmed = text.trim();
  return PLAIN.test(trimmed) && !WORDS_OF_YAML.test(trimmed) ? trimmed : JSON.stringify(trimmed);
}

/** A name that a scenario may have: letters of the Latin alphabet, digits, - and _. */
export function nameScenario(text: string): string {
  const words = text.trim().replace(/[^A-Za-z0-9_-]+/g, "-");
  return words.replace(/^[-_]+|[-_]+$/g, "").slice(0, 60) || "my-study";
}

/** A short id of a claim, from its first words; other scripts get a number. */
export function nameClaim(text: string, at: number): string {
  const words = text.toLowerCase().match(/[a-z][a-z0-9]*/g) ?? [];
  const long = words.filter((word) => word.length > 3).slice(-2);
  return long.length > 0 ? long.join("-") : `claim-${at + 1}`;
}

export function nameClaims(claims: ClaimDraft[]): string[] {
  const taken = new Map<string, number>();
  return claims.map((claim, at) => {
    const name = nameClaim(claim.text, at);
    const times = (taken.get(name) ?? 0) + 1;
    taken.set(name, times);
    return times > 1 ? `${name}-${times}` : name;
  });
}

function writeEvent(event: EventDraft, names: string[]): string {
  const parts = [`${event.kind}: ${quote(event.text)}`];
  if (event.kind === "post") parts.push(event.round === 0 ? "by: most_followed" : "by: random");
  if (event.round > 0) parts.push(`round: ${event.round}`);
  const claim = names[event.claim];
  if (claim) parts.push(`${event.relation}: ${claim}`);
  return `  - {${parts.join(", ")}}`;
}

export function writeYaml(draft: Draft): string {
  const claims = draft.claims.filter((claim) => claim.text.trim());
  const names = nameClaims(draft.claims);
  const events = draft.events.filter((event) => event.text.trim());
  const lines = [
    `name: ${quote(nameScenario(draft.name || draft.topic))}`,
    ...(draft.topic.trim() ? [`topic: ${quote(draft.topic)}`] : []),
    `seed: ${draft.seed}`,
    `rounds: ${draft.rounds}`,
    `time: {minutes_per_round: ${draft.minutes}}`,
    "",
    `population: {count: ${draft.people}}`,
    `worlds: [${draft.worlds.join(", ")}]`,
  ];
  if (draft.model.trim()) {
    const address = draft.baseUrl.trim() ? `, base_url: ${JSON.stringify(draft.baseUrl.trim())}` : "";
    lines.push(`mind: {kind: language, model: ${JSON.stringify(draft.model.trim())}${address}}`);
  }
  if (draft.maxCost.trim()) lines.push(`budget: {max_cost: ${Number(draft.maxCost)}}`);
  if (claims.length > 0) {
    lines.push("", "claims:");
    for (const [at, claim] of draft.claims.entries()) {
      if (!claim.text.trim()) continue;
      const truth = claim.truth === "open" ? "" : `, truth: ${claim.truth}`;
      lines.push(`  - {id: ${names[at]}, text: ${quote(claim.text)}${truth}}`);
    }
  }
  if (events.length > 0) lines.push("", "events:", ...events.map((event) => writeEvent(event, names)));
  return lines.join("\n") + "\n";
}

/** What a scenario's text has in it, without reading all of it: enough for a card. */
export function glance(text: string): { worlds: string[]; isExperiment: boolean; people: number | null } {
  const found = WORLDS.filter(({ value }) => new RegExp(`^worlds:[^\\n]*\\b${value}\\b|^  ${value}:`, "m").test(text));
  const people = /\bcount: (\d+)/.exec(text);
  return {
    worlds: found.map(({ value }) => value),
    isExperiment: /^experiment:/m.test(text),
    people: people ? Number(people[1]) : null,
  };
}
