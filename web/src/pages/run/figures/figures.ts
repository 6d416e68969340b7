/** The figures of a run as small multiples: for each a title, a number, and a sentence. */

import type { ClaimInfo, Figures, WorldInfo } from "../../../api/types.ts";
import { isSocial } from "../worlds.ts";
import { formatFigure, formatShare, formatSigned } from "../../../text/format.ts";

export interface FigureLine {
  name: string;
  values: (number | null)[];
  colour: `--${string}`;
  isFaint: boolean;
}

export interface FigureChart {
  key: string;
  title: string;
  lines: FigureLine[];
  /** The ends of the scale, where the figure has natural ones. */
  min?: number;
  max?: number;
  number: string;
  sentence: string;
  format: (value: number) => string;
}

type Series = readonly (number | null)[] | undefined;

/** The last known value up to a round; figures of a round that is not measured yet are missing. */
export function valueAt(values: Series, at: number): number | null {
  for (let index = Math.min(at, (values?.length ?? 0) - 1); index >= 0; index--) {
    const value = values?.[index];
    if (value !== null && value !== undefined) return value;
  }
  return null;
}

function firstValue(values: Series): number | null {
  return values?.find((value) => value !== null && value !== undefined) ?? null;
}

/** How far it has moved: "+0.09 since the start", or that it hardly has. */
export function describeChange(values: Series, at: number, least = 0.02): string {
  const [first, now] = [firstValue(values), valueAt(values, at)];
  if (first === null || now === null) return "not measured yet";
  return Math.abs(now - first) < least
    ? "hardly changed since the start"
    : `${formatSigned(now - first)} since the start`;
}

/** The first round in which a share of people was reached. */
export function findRoundAbove(values: Series, level: number): number | null {
  const at = values?.findIndex((value) => value !== null && value >= level) ?? -1;
  return at === -1 ? null : at;
}

interface Kind {
  title: string;
  colour: `--${string}`;
  min?: number;
  max?: number;
  format: (value: number) => string;
  describe: (values: Series, at: number) => string;
}

function describeMean(values: Series, at: number): string {
  const now = valueAt(values, at);
  if (now === null) return "not measured yet";
  const side = Math.abs(now) < 0.1 ? "undecided on average" : now > 0 ? "for it on average" : "against it on average";
  return `${side}, ${describeChange(values, at)}`;
}

function describeActivity(values: Series, at: number): string {
  const seen = (values ?? []).slice(0, at + 1).map((value) => value ?? 0);
  const most = Math.max(0, ...seen);
  return most === 0 ? "nobody has acted yet" : `actions per person; most in round ${seen.indexOf(most)}`;
}

function describeInequality(values: Series, at: number): string {
  const now = valueAt(values, at);
  if (now === null) return "not measured yet";
  if (now < 0.05) return "nobody stands out";
  if (now < 0.35) return "it is spread widely";
  return now < 0.7 ? "some have much more than others" : "few have nearly all of it";
}

function describePolarisation(values: Series, at: number): string {
  const [first, now] = [firstValue(values), valueAt(values, at)];
  if (first === null || now === null) return "not measured yet";
  if (Math.abs(now - first) < 0.02) return "the sides are as far apart as at the start";
  return `the sides ${now > first ? "drift apart" : "come closer"}: ${formatSigned(now - first)} since the start`;
}

const KINDS: Record<string, Kind> = {
  mean: { title: "Opinion", colour: "--for", min: -1, max: 1, format: formatFigure, describe: describeMean },
  polarisation: {
    title: "Polarisation",
    colour: "--violet",
    min: 0,
    format: formatFigure,
    describe: describePolarisation,
  },
  spread: { title: "Spread of opinions", colour: "--violet", min: 0, format: formatFigure, describe: describeChange },
  activity: { title: "Activity", colour: "--accent", min: 0, format: formatFigure, describe: describeActivity },
  inequality: {
    title: "Inequality",
    colour: "--warn",
    min: 0,
    max: 1,
    format: formatFigure,
    describe: describeInequality,
  },
};

const REACH: Kind = {
  title: "Reach",
  colour: "--against",
  min: 0,
  max: 1,
  format: formatShare,
  describe: (values, at) => {
    const half = findRoundAbove(values?.slice(0, at + 1), 0.5);
    return half === null ? "of people had to do with it" : `of people had to do with it, half by round ${half}`;
  },
};

const BELIEF: Kind = {
  title: "Belief",
  colour: "--for",
  min: -1,
  max: 1,
  format: formatFigure,
  describe: (values, at) => {
    const now = valueAt(values, at);
    if (now === null) return "not measured yet";
    const side =
      Math.abs(now) < 0.1 ? "most are undecided" : now > 0 ? "believed on average" : "not believed on average";
    return `${side}, ${describeChange(values, at)}`;
  },
};

function buildChart(key: string, title: string, kind: Kind, lines: FigureLine[], at: number): FigureChart {
  const shown = lines.find((line) => !line.isFaint)?.values;
  const now = valueAt(shown, at);
  return {
    key,
    title,
    lines,
    ...(kind.min === undefined ? {} : { min: kind.min }),
    ...(kind.max === undefined ? {} : { max: kind.max }),
    number: now === null ? "–" : kind.format(now),
    sentence: kind.describe(shown, at),
    format: kind.format,
  };
}

function shorten(text: string, most = 44): string {
  const letters = Array.from(text);
  return letters.length <= most
    ? text
    : `${letters
        .slice(0, most - 1)
        .join("")
        .trimEnd()}…`;
}

/**
 * The charts of a world at a round. Other worlds are faint lines beside it.
 *
 * Figures of claims come first, as they are what a run with claims is about; figures that no kind is known for last.
 */
export function listCharts(
  figures: Figures,
  claims: readonly ClaimInfo[],
  { name: world, kind: worldKind }: WorldInfo,
  round: number,
): FigureChart[] {
  const at = Math.max(
    0,
    figures.rounds.findLastIndex((known) => known <= round),
  );
  const charts: FigureChart[] = [];
  for (const claim of claims) {
    const values = figures.claims[claim.id];
    const about = shorten(claim.text || claim.id);
    for (const [kind, series] of [[REACH, values?.reach] as const, [BELIEF, values?.belief] as const]) {
      if (!series?.some((value) => value !== null)) continue;
      const line = { name: kind.title, values: series, colour: kind.colour, isFaint: false };
      charts.push(buildChart(`${kind.title} ${claim.id}`, `${kind.title}: “${about}”`, kind, [line], at));
    }
  }
  const order = Object.keys(KINDS);
  const rank = (name: string): number => (order.indexOf(name) + order.length + 1) % (order.length + 1);
  for (const name of Object.keys(figures.figures).sort((a, b) => rank(a) - rank(b))) {
    const worlds = figures.figures[name] ?? {};
    // Texts that could not be read are a matter of quality.
    if (name === "unread" || !worlds[world]) continue;
    const kind = KINDS[name] ?? {
      title: name.replaceAll("_", " "),
      colour: "--muted",
      format: formatFigure,
      describe: describeChange,
    };
    const lines = Object.entries(worlds)
      .map(([other, values]) => ({ name: other, values, colour: kind.colour, isFaint: other !== world }))
      // What is drawn last lies above.
      .sort((a, b) => Number(b.isFaint) - Number(a.isFaint));
    // It is measured on what posts received; elsewhere on what people did.
    const of = name === "inequality" ? (isSocial(worldKind) ? " of attention" : " of activity") : "";
    charts.push(buildChart(name, kind.title + of, kind, lines, at));
  }
  return charts;
}

/** How much was done in each round, over all worlds: what people did, not how often somebody was asked. */
export function sumActivity(figures: Figures): number[] {
  const worlds = Object.values(figures.figures["activity"] ?? {});
  if (worlds.length === 0) return figures.activity;
  return figures.rounds.map((_, at) => worlds.reduce((sum, values) => sum + (values[at] ?? 0), 0));
}
