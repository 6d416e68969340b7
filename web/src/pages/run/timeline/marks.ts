/** Where the marks of a timeline and their labels go, so that no two ever touch. */

import type { Mark } from "../../../api/types.ts";

/** Marks that lie so close that they are one for a finger. */
const APART_PX = 26;
const DOT_PX = 7;
const GAP_PX = 10;
/** A label that is cut shorter than this says nothing. */
const SHORTEST_PX = 44;

export interface MarkGroup {
  x: number;
  round: number;
  marks: Mark[];
  /** Without a label only the dot is shown. */
  label: { left: number; width: number; lane: number; text: string; isCut: boolean } | null;
}

interface Span {
  from: number;
  to: number;
}

interface Room {
  /** Pixels from the first to the last round. */
  width: number;
  rounds: number;
  lanes: number;
  measure: (text: string) => number;
}

function groupMarks(marks: readonly Mark[], { width, rounds }: Room): MarkGroup[] {
  const groups: MarkGroup[] = [];
  for (const mark of [...marks].sort((a, b) => a.round - b.round)) {
    const x = rounds === 0 ? 0 : (mark.round / rounds) * width;
    const last = groups[groups.length - 1];
    if (last && x - last.x < APART_PX) last.marks.push(mark);
    else groups.push({ x, round: mark.round, marks: [mark], label: null });
  }
  return groups;
}

export function describeGroup(marks: readonly Mark[]): string {
  const first = marks[0]?.text ?? "";
  return marks.length > 1 ? `${first} +${marks.length - 1}` : first;
}

/** The widest free part of a lane that begins or ends at a dot. */
function findGap(taken: readonly Span[], x: number, wanted: number, width: number): Span | null {
  const right = { from: x + DOT_PX, to: width };
  const left = { from: 0, to: x - DOT_PX };
  for (const span of taken) {
    if (span.to > right.from && span.from < right.to) right.to = Math.min(right.to, span.from - GAP_PX);
    if (span.from < left.to && span.to > left.from) left.from = Math.max(left.from, span.to + GAP_PX);
  }
  if (right.to - right.from >= wanted) return { from: right.from, to: right.from + wanted };
  if (left.to - left.from >= wanted) return { from: left.to - wanted, to: left.to };
  const longer = right.to - right.from >= left.to - left.from ? right : left;
  return longer.to - longer.from >= SHORTEST_PX ? longer : null;
}

/**
 * Group marks that lie together, and give each group a label: whole where there is room in any lane, else cut, else none.
 *
 * The dots lie below all lanes, so a label only has to keep clear of labels, and of the lines down from higher lanes.
 */
export function placeMarks(marks: readonly Mark[], room: Room): MarkGroup[] {
  const groups = groupMarks(marks, room);
  const lanes: Span[][] = Array.from({ length: room.lanes }, () => []);
  for (const group of groups) {
    const text = describeGroup(group.marks);
    const wanted = Math.ceil(room.measure(text));
    let best: { span: Span; lane: number } | null = null;
    for (const [lane, taken] of lanes.entries()) {
      const isCrossed = lanes
        .slice(lane + 1)
        .some((below) => below.some(({ from, to }) => from < group.x && group.x < to));
      if (isCrossed) continue;
      const span = findGap(taken, group.x, wanted, room.width);
      if (span && (!best || span.to - span.from > best.span.to - best.span.from)) best = { span, lane };
    }
    if (!best) continue;
    const { span, lane } = best;
    const width = span.to - span.from;
    group.label = { left: span.from, width, lane, text, isCut: width < wanted };
    // Its line goes down from its lane through those below it.
    for (const below of lanes.slice(lane + 1)) below.push({ from: group.x - 1, to: group.x + 1 });
    lanes[lane]?.push({ from: Math.min(span.from, group.x - DOT_PX), to: Math.max(span.to, group.x + DOT_PX) });
  }
  return groups;
}
