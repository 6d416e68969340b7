/** Turns a network as it is answered into what is drawn. */

import type { DrawnLine, DrawnNodes } from "../../drawing/NodeDrawing.ts";
import type { NetworkPeople, NetworkPicture, NetworkState, NetworkTies } from "./network.svelte.ts";

/** More lines than these are a hairball; those of a chosen person are all drawn. */
const MOST_TIES = 6_000;
const MOST_MOVES = 120;
const OPINION_STEPS = 20;

export type LineKind = "moves" | "path" | "ties";

export interface Palette {
  opinion: (value: number | null) => string;
  against: string;
  for: string;
  path: string;
  tie: string;
}

export interface Places {
  x: Float32Array;
  y: Float32Array;
}

export function placeNodes(people: NetworkPeople): Places {
  return { x: Float32Array.from(people.x), y: Float32Array.from(people.y) };
}

/** Opinions in steps, so that nodes of one colour are drawn at once. */
export function roundOpinion(value: number | null): number | null {
  return value === null ? null : Math.round(value * OPINION_STEPS) / OPINION_STEPS;
}

export function sizeOf(picture: NetworkPicture): number[] {
  return picture.size === "influence" ? picture.state.influence : picture.state.followers;
}

export function buildNodes(
  picture: NetworkPicture,
  people: NetworkPeople,
  places: Places,
  palette: Palette,
): DrawnNodes {
  const sizes = sizeOf(picture);
  const { followers } = picture.state;
  const most = Math.max(...sizes, 1e-9);
  const count = people.id.length;
  const [least, largest] = count > 1_500 ? [1.7, 13] : count > 300 ? [2.6, 15] : [4, 17];
  const radius = Float32Array.from(sizes, (size) => least + (largest - least) * Math.sqrt(size / most));
  const order = Array.from(sizes.keys())
    .sort((one, other) => sizes[other]! - sizes[one]! || followers[other]! - followers[one]!)
    .slice(0, 2_000);
  return {
    ...places,
    radius,
    colour: picture.state.opinion.map((value) => palette.opinion(roundOpinion(value ?? null))),
    label: people.name,
    order,
  };
}

/** The ties of a round, as pairs of positions; of too many, an even part. */
export function chooseTies(ties: NetworkTies, round: number): { pairs: Uint32Array; count: number } {
  const held: number[] = [];
  for (let at = 0; at < ties.source.length; at++) {
    const until = ties.until[at] ?? null;
    if ((ties.since[at] ?? 0) <= round && (until === null || until > round)) held.push(at);
  }
  const step = Math.max(1, held.length / MOST_TIES);
  const pairs: number[] = [];
  for (let at = 0; at < held.length; at += step) {
    const tie = held[Math.floor(at)]!;
    pairs.push(ties.source[tie]!, ties.target[tie]!);
  }
  return { pairs: Uint32Array.from(pairs), count: held.length };
}

export function neighboursOf(ties: NetworkTies, node: number, round: number): Set<number> {
  const found = new Set<number>();
  for (let at = 0; at < ties.source.length; at++) {
    const until = ties.until[at] ?? null;
    if ((ties.since[at] ?? 0) > round || (until !== null && until <= round)) continue;
    if (ties.source[at] === node) found.add(ties.target[at]!);
    else if (ties.target[at] === node) found.add(ties.source[at]!);
  }
  return found;
}

export function buildMoves(state: NetworkState, selected: number | null, palette: Palette): DrawnLine[] {
  const wanted = selected === null ? state.moves.slice(0, MOST_MOVES) : state.moves;
  const most = Math.max(...state.moves.map((move) => Math.abs(move[2] as number)), 1e-9);
  return wanted
    .filter(([from, to]) => selected === null || from === selected || to === selected)
    .map(([from, to, amount]) => ({
      from: from as number,
      to: to as number,
      colour: (amount as number) < 0 ? palette.against : palette.for,
      width: 0.6 + 2.2 * Math.sqrt(Math.abs(amount as number) / most),
    }));
}

/** The path of a claim: all of it, or what went on from one person. */
export function buildPath(state: NetworkState, selected: number | null, palette: Palette): DrawnLine[] {
  const reached = new Set([selected]);
  const steps = state.path.filter(([from, to]) => {
    if (selected === null) return true;
    if (to === selected) return true;
    if (!reached.has(from as number)) return false;
    reached.add(to as number);
    return true;
  });
  return steps.map(([from, to]) => ({
    from: from as number,
    to: to as number,
    colour: palette.path,
    width: 1.3,
  }));
}
