/** What a bundle holds, as it was after a round. */

/** Rounds, in order, and the values from each of them on. */
export type ValuePast = [rounds: number[], values: number[]];

export interface Entry {
  route: string;
  values: Record<string, unknown>;
  answer: unknown;
}

/** How many of some rounds, in order, are not after one. */
export function countUpTo(rounds: readonly number[] | undefined, until: number): number {
  if (!rounds) return 0;
  let low = 0;
  let high = rounds.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rounds[middle] ?? 0) <= until) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The value after a round; undefined before the first. */
export function findValue(past: ValuePast | undefined, round: number): number | undefined {
  return past?.[1][countUpTo(past[0], round) - 1];
}

/** What a person thought after a round: the mean over the worlds. */
export function findOpinion(pasts: readonly ValuePast[], round: number): number | null {
  const held = pasts.map((past) => findValue(past, round)).filter((value) => value !== undefined);
  return held.length > 0 ? held.reduce((sum, value) => sum + value, 0) / held.length : null;
}

/** Which part of an answer is asked for; a bundle has all of it, or what it was asked for itself. */
const PARTS = new Set(["limit", "offset", "max_nodes", "only_state", "in_parts", "before"]);
const TIMES = ["round", "until"] as const;

const timeOf = (values: Record<string, unknown>): number | undefined => {
  for (const name of TIMES) if (typeof values[name] === "number") return values[name];
  return undefined;
};

/** The answer to a question, or to the same about the nearest round before; undefined where there is none. */
export function findEntry(entries: readonly Entry[], route: string, values: Record<string, unknown>): unknown {
  const wanted = Object.entries(values).filter(
    ([name, value]) => value !== undefined && value !== "" && !PARTS.has(name) && name !== "round" && name !== "until",
  );
  const isExact = route.endsWith("/explain");
  const found = entries.filter(
    (entry) => entry.route === route && wanted.every(([name, value]) => String(entry.values[name]) === String(value)),
  );
  const whole = found.find((entry) => timeOf(entry.values) === undefined);
  const round = timeOf(values);
  if (round === undefined) return (whole ?? found.at(-1))?.answer;
  if (isExact)
    return found.filter((entry) => timeOf(entry.values) === round).flatMap((entry) => entry.answer as unknown[]);
  const before = found.filter((entry) => (timeOf(entry.values) ?? Infinity) <= round);
  const nearest = before.reduce<Entry | undefined>(
    (best, entry) => (!best || (timeOf(entry.values) ?? 0) >= (timeOf(best.values) ?? 0) ? entry : best),
    undefined,
  );
  return nearest ? merge(whole?.answer, nearest.answer) : whole?.answer;
}

/** An answer without what stays the same over the rounds, completed by one that has it. */
function merge(whole: unknown, part: unknown): unknown {
  if (!isRecord(whole) || !isRecord(part)) return part;
  return Object.fromEntries(Object.entries(part).map(([name, value]) => [name, value ?? whole[name] ?? null]));
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
