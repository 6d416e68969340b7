/** What the pages of experiments read, and how they write its figures. Every figure is computed by the server. */

import type { components } from "../../api/schema.d.ts";

type Schemas = components["schemas"];

export type ExperimentRow = Schemas["ExperimentInfo"];
export type Experiment = Schemas["ExperimentAnswer"];
export type Tier = Schemas["TierInfo"];
export type Arm = Schemas["ArmInfo"];
export type Report = Schemas["ExperimentReportAnswer"];
export type ReportTier = Schemas["ReportTier"];
export type ReportArm = Schemas["ReportArm"];
export type Effect = Schemas["EffectAnswer"];
export type Curves = Schemas["CurvesAnswer"];
export type Band = Schemas["BandAnswer"];
export type Ends = [number | null, number | null] | null;

export const PASS_RATE = "pass_rate";

/** What a letter of an arm's `marks` says of a run. */
export const MARKS: Record<string, { text: string; kind: string }> = {
  w: { text: "waits", kind: "waiting" },
  r: { text: "runs now", kind: "running" },
  p: { text: "passed", kind: "passed" },
  n: { text: "not passed", kind: "not-passed" },
  c: { text: "completed", kind: "completed" },
  f: { text: "failed", kind: "lost" },
  s: { text: "stopped early", kind: "lost" },
  i: { text: "interrupted", kind: "interrupted" },
  x: { text: "left out, as its arm was stopped", kind: "left-out" },
};

/** The id with which every route reads a run of an experiment. */
export function nameRun(experiment: string, tier: string, arm: string, seed: number): string {
  return [experiment, tier, arm, seed].join("~");
}

export function nameOutcome(outcome: string | null): string {
  return outcome === PASS_RATE ? "pass rate" : (outcome ?? "");
}

/** Three digits that count, as the report writes them; a share where it is the pass rate. */
export function formatEstimate(value: number | null | undefined, outcome = ""): string {
  if (value === null || value === undefined) return "–";
  if (outcome === PASS_RATE) return `${withSign((value * 100).toFixed(0))} %`;
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1000) return withSign(Math.round(value).toLocaleString("en-US"));
  if (size < 0.0005) return withSign(value.toPrecision(1));
  const digits = size >= 0.01 ? Math.min(3, Math.max(0, 2 - Math.floor(Math.log10(size)))) : 3;
  return withSign(value.toFixed(digits));
}

export function formatDifference(value: number | null | undefined, outcome = ""): string {
  const text = formatEstimate(value, outcome);
  return value !== null && value !== undefined && value > 0 ? `+${text}` : text;
}

export function formatEnds(ends: Ends, outcome = "", signed = false): string {
  if (!ends || (ends[0] === null && ends[1] === null)) return "not known";
  const write = signed ? formatDifference : formatEstimate;
  const side = (value: number | null, sign: string): string => (value === null ? `${sign}∞` : write(value, outcome));
  return `${side(ends[0], "−")} to ${side(ends[1], "")}`;
}

/** Dollars with enough digits for what a run of a small model costs. */
export function formatPrice(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (value === 0 || value >= 1000) return `$${Math.round(value).toLocaleString("en-US")}`;
  if (value >= 0.1) return `$${value.toFixed(2)}`;
  return value >= 1e-4 ? `$${Number(value.toPrecision(2))}` : "< $0.0001";
}

export function formatPriceEnds(ends: Ends): string {
  if (!ends || ends[0] === null) return "not known";
  return `${formatPrice(Math.max(ends[0], 0))} to ${ends[1] === null ? "∞" : formatPrice(ends[1])}`;
}

export function formatDuration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return "–";
  const whole = Math.round(seconds);
  if (whole < 60) return `${seconds < 10 ? Number(seconds.toPrecision(2)) : whole} s`;
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  if (hours >= 48) return `${Math.round(hours / 24)} days`;
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
}

/** The mean of an outcome in an arm with the ends of its interval. */
export function readOutcome(arm: ReportArm, outcome: string): { value: number | null; ends: Ends } {
  if (outcome === PASS_RATE) return { value: arm.pass_rate, ends: arm.pass_rate_interval as Ends };
  const found = arm.metrics[outcome];
  return found ? { value: found.mean, ends: found.mean_interval as Ends } : { value: null, ends: null };
}

export function describeStatus(experiment: Pick<ExperimentRow, "status" | "ended" | "runs">): {
  text: string;
  tone: "accent" | "good" | "warn" | "bad" | "plain";
  isBeating: boolean;
} {
  const of = `${experiment.ended.toLocaleString("en-US")} of ${experiment.runs.toLocaleString("en-US")} runs`;
  if (experiment.status === "running") return { text: of, tone: "accent", isBeating: true };
  if (experiment.status === "completed") return { text: "completed", tone: "good", isBeating: false };
  const tone = experiment.status === "stopped" ? "plain" : experiment.status === "interrupted" ? "warn" : "bad";
  return {
    text: experiment.status === "unreadable" ? "unreadable" : `${experiment.status} · ${of}`,
    tone,
    isBeating: false,
  };
}

/** A change as one line of a scenario: `mind.persuasion = 0.3`. */
export function describeChanges(changes: Record<string, unknown>): string {
  return Object.entries(changes)
    .map(([path, value]) => `${path} = ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ");
}

function withSign(text: string): string {
  return Number(text.replaceAll(",", "")) === 0 ? text.replace("-", "") : text.replace("-", "−");
}
