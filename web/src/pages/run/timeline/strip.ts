/** Draws the strip of a timeline: how much was done in each round, and below how opinions were spread. */

import { placeRound, type Scale } from "./rounds.ts";

export interface Strip {
  scale: Scale;
  /** Rounds in order, and for each what was done in it. */
  rounds: readonly number[];
  activity: readonly number[];
  /** For each round how many people are in each part of the scale, from against to for. */
  opinions: readonly (readonly number[])[];
  /** Heights in pixels. */
  activityHeight: number;
  heatHeight: number;
  gap: number;
}

export interface StripColours {
  accent: string;
  /** The colour of an opinion from -1 to 1. */
  opinion: (value: number) => string;
}

/** The rounds that share a column of pixels, as one: the most that was done, and opinions summed. */
export interface Column {
  from: number;
  to: number;
  activity: number;
  opinions: number[];
}

export function foldColumns({ scale, rounds, activity, opinions }: Strip): Column[] {
  const step = scale.rounds === 0 ? scale.width : scale.width / scale.rounds;
  const columns: Column[] = [];
  let pixel = -1;
  for (const [at, round] of rounds.entries()) {
    const x = placeRound(scale, round);
    const last = columns[columns.length - 1];
    const bins = opinions[at] ?? [];
    if (last && step < 1 && Math.floor(x) === pixel) {
      last.to = placeRound(scale, round + 0.5);
      last.activity = Math.max(last.activity, activity[at] ?? 0);
      if (last.opinions.length < bins.length) last.opinions = [...bins];
      else for (const [bin, count] of bins.entries()) last.opinions[bin] = (last.opinions[bin] ?? 0) + count;
    } else {
      pixel = Math.floor(x);
      columns.push({
        from: placeRound(scale, round - 0.5),
        to: placeRound(scale, round + 0.5),
        activity: activity[at] ?? 0,
        opinions: [...bins],
      });
    }
  }
  return columns;
}

/** The share of people as how strongly a cell is coloured: few can be seen, and many do not drown them. */
export function shadeOf(share: number): number {
  return share <= 0 ? 0 : Math.min(1, 0.12 + 0.88 * Math.sqrt(share / 0.4));
}

export function drawStrip(context: CanvasRenderingContext2D, strip: Strip, colours: StripColours): void {
  const { scale, activityHeight, heatHeight, gap } = strip;
  const columns = foldColumns(strip);
  context.clearRect(0, 0, scale.width, activityHeight + gap + heatHeight);
  const most = Math.max(1e-9, ...columns.map((column) => column.activity));

  context.fillStyle = colours.accent;
  for (const column of columns) {
    if (column.activity <= 0) continue;
    const tall = Math.max(1.5, (column.activity / most) * activityHeight);
    const inset = column.to - column.from > 5 ? 0.75 : 0;
    context.globalAlpha = 0.55;
    const from = Math.max(0, column.from + inset);
    const to = Math.min(scale.width, column.to - inset);
    context.fillRect(from, activityHeight - tall, Math.max(1, to - from), tall);
  }

  const top = activityHeight + gap;
  // Edges lie on pixels, so that there are no seams between cells.
  const ratio = context.getTransform().a || 1;
  const snap = (value: number): number => Math.round(value * ratio) / ratio;
  for (const column of columns) {
    const all = column.opinions.reduce((sum, count) => sum + count, 0);
    const bins = column.opinions.length;
    const [from, to] = [snap(Math.max(0, column.from)), snap(Math.min(scale.width, column.to))];
    for (const [bin, count] of column.opinions.entries()) {
      if (count === 0) continue;
      context.globalAlpha = shadeOf(count / all);
      context.fillStyle = colours.opinion(bins === 1 ? 0 : (bin / (bins - 1)) * 2 - 1);
      const [high, low] = [bin + 1, bin].map((step) => snap(top + heatHeight * (1 - step / bins)));
      context.fillRect(from, high ?? 0, Math.max(1 / ratio, to - from), (low ?? 0) - (high ?? 0));
    }
  }
  context.globalAlpha = 1;
}
