/** Two runs beside one another: what the page reads, and how it says where they differ. */

import type { components } from "../../api/schema.d.ts";
import type { Figures } from "../../api/types.ts";

type Schemas = components["schemas"];

export type Comparison = Schemas["ComparisonAnswer"];
export type WorldComparison = Schemas["WorldComparison"];
export type Change = Schemas["ChangeInRound"];
export type ReachedPerson = Schemas["ReachedPerson"];
export type RoundChange = Schemas["RoundChange"];

export const ONE = "--arm-1" as const;
export const OTHER = "--arm-2" as const;

/** Names by which two runs are told apart, also where both are called the same. */
export function nameSides({ one, other }: Comparison): [string, string] {
  return one.name === other.name ? [one.id, other.id] : [one.name, other.name];
}

/** The world in which they part first, and where. */
export function findFirst(comparison: Comparison): WorldComparison | null {
  const parted = comparison.worlds.filter((world) => world.first);
  return parted.sort((one, two) => (one.first?.round ?? 0) - (two.first?.round ?? 0))[0] ?? null;
}

const DOINGS: Record<string, string> = {
  happening: "something happens in only one of them",
  turn: "acts in only one of them",
  picture: "sees something different",
  decision: "decides differently",
  event: "acts differently",
};

export function describeFirst(comparison: Comparison): string {
  const world = findFirst(comparison);
  if (!world?.first) {
    if (comparison.worlds.length === 0) return "They have no world in common, so nothing can be compared.";
    return "Nothing differs: the two histories are the same as far as both go.";
  }
  const { round, changes, count } = world.first;
  const first = changes[0];
  const who = first?.name
    ? `${first.name} ${DOINGS[first.what] ?? "differs"}`
    : "something happens in only one of them";
  const more =
    count > 1 ? `, and ${count - 1} more ${count === 2 ? "thing differs" : "things differ"} in that round` : "";
  return `The two are the same up to round ${Math.max(0, round - 1)}. In round ${round}, on ${world.world}, ${who}${more}.`;
}

export const CAUSES: Record<string, string> = {
  happening: "by what was made to happen",
  saw: "by what they saw",
  reaction: "by a reaction",
  totals: "by counts and rankings",
  scenario: "by what was declared",
};

export function formatValue(value: unknown): string {
  if (value === null || value === undefined) return "–";
  if (Array.isArray(value)) return value.map(formatValue).join(", ");
  if (typeof value !== "object") return String(value);
  // What is not set says nothing.
  const given = Object.entries(value).filter(
    ([, part]) => part !== null && !(Array.isArray(part) && part.length === 0),
  );
  return given.map(([name, part]) => `${name.replaceAll("_", " ")}: ${formatValue(part)}`).join(", ");
}

/** What somebody saw or did, which may be told as the values of an action. */
export function describeText(text: string): string {
  if (!text.startsWith("{")) return text;
  try {
    return formatValue(JSON.parse(text)) || "nothing";
  } catch {
    // It is cut off, or a person's own words.
    return text;
  }
}

export interface FigureSeries {
  key: string;
  title: string;
  one: (number | null)[];
  other: (number | null)[];
}

const TITLES: Record<string, string> = {
  mean: "Mean opinion",
  spread: "Spread of opinions",
  polarisation: "Polarisation",
  activity: "Activity",
  inequality: "Inequality of attention",
};

/** The figures of one world that both runs have, those of claims first. */
export function pairFigures(one: Figures, other: Figures, world: string): FigureSeries[] {
  const claims = Object.keys(one.claims).filter((id) => other.claims[id]);
  const found: FigureSeries[] = claims.flatMap((id) =>
    (["belief", "reach"] as const).map((kind) => ({
      key: `${kind} ${id}`,
      title: `${kind === "belief" ? "Belief in" : "Reach of"} ${id}`,
      one: one.claims[id]?.[kind] ?? [],
      other: other.claims[id]?.[kind] ?? [],
    })),
  );
  for (const [name, title] of Object.entries(TITLES)) {
    const [left, right] = [one.figures[name]?.[world], other.figures[name]?.[world]];
    if (left && right) found.push({ key: name, title, one: left, other: right });
  }
  return found.filter(({ one: left, other: right }) => [...left, ...right].some((value) => value !== null));
}

/** The last known value up to a place. */
export function valueAt(values: (number | null)[], at: number): number | null {
  for (let index = Math.min(at, values.length - 1); index >= 0; index--) {
    const value = values[index];
    if (value !== null && value !== undefined) return value;
  }
  return null;
}
