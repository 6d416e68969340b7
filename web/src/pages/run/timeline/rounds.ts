/** Rounds of a timeline: where they lie, which key leads to which, and when they are. */

export interface Scale {
  /** The last round that there will be, as far as is known. */
  rounds: number;
  /** Pixels from round 0 to the last one. */
  width: number;
}

export function placeRound({ rounds, width }: Scale, round: number): number {
  return rounds === 0 ? 0 : (round / rounds) * width;
}

/** The round under a point, of those that have been lived. */
export function findRound(scale: Scale, x: number, last: number): number {
  const round = scale.width === 0 ? 0 : Math.round((x / scale.width) * scale.rounds);
  return clampRound(round, last);
}

export function clampRound(round: number, last: number): number {
  return Math.max(0, Math.min(last, Math.round(round)));
}

/** Where a key leads, or null where it leads nowhere. */
export function stepRound(key: string, round: number, last: number): number | null {
  const page = Math.max(5, Math.round(last / 10));
  const steps: Record<string, number> = {
    ArrowLeft: round - 1,
    ArrowDown: round - 1,
    ArrowRight: round + 1,
    ArrowUp: round + 1,
    PageDown: round - page,
    PageUp: round + page,
    Home: 0,
    End: last,
  };
  const to = steps[key];
  return to === undefined ? null : clampRound(to, last);
}

/** When a round begins, in simulated time. Round 0 is before anybody acts, at the time of round 1. */
export function timeOfRound(start: string | null, minutes: number, round: number): string | null {
  if (!start) return null;
  const begin = Date.parse(/[zZ]|[+-]\d\d:\d\d$/.test(start) ? start : `${start}Z`);
  if (Number.isNaN(begin)) return null;
  return new Date(begin + Math.max(0, round - 1) * minutes * 60_000).toISOString();
}

const NICE = [1, 2, 5];
const GAP_PX = 12;

/** Rounds that may get a label on the axis, about `apart` pixels from one another. */
export function pickTicks({ rounds, width }: Scale, apart: number): number[] {
  if (rounds <= 0 || width <= 0) return [];
  const wanted = Math.max(1, Math.floor(width / apart));
  let step = 1;
  for (let power = 1; rounds / step > wanted; power *= 10) {
    for (const nice of NICE) {
      step = nice * power;
      if (rounds / step <= wanted) break;
    }
  }
  return Array.from({ length: Math.floor(rounds / step) + 1 }, (_, at) => at * step);
}

export interface Tick {
  left: number;
  text: string;
}

/** Labels of the axis, each below its round as far as the ends allow; one that would touch another is left out. */
export function placeTicks(
  scale: Scale,
  apart: number,
  textOf: (round: number, before: number | null) => string,
  measure: (text: string) => number,
): Tick[] {
  const ticks: Tick[] = [];
  let end = -Infinity;
  let before: number | null = null;
  for (const round of pickTicks(scale, apart)) {
    const text = textOf(round, before);
    if (!text) continue;
    const wide = measure(text);
    const left = Math.max(0, Math.min(scale.width - wide, placeRound(scale, round) - wide / 2));
    if (left < end + GAP_PX) continue;
    ticks.push({ left, text });
    end = left + wide;
    before = round;
  }
  return ticks;
}
