/** The state of a run in words, and what can be done in it. */

import type { RunRow } from "../api/types.ts";

export type StateTone = "plain" | "accent" | "good" | "warn" | "bad";

interface Stated {
  status: string;
  round: number;
  rounds: number;
}

const WORKING = new Set(["starting", "running", "pausing", "stopping"]);
const UNSTARTED = new Set(["created", "ready", "idle"]);

/** A process works on it now, or waits to. */
export function isAlive(status: string): boolean {
  return WORKING.has(status) || status === "paused";
}

export function isUnstarted(status: string): boolean {
  return UNSTARTED.has(status);
}

export function hasFailed(status: string): boolean {
  return status === "failed" || status === "interrupted";
}

export function canStart(run: Pick<RunRow, "status" | "resumable">): boolean {
  return isUnstarted(run.status) || (!isAlive(run.status) && run.resumable);
}

export function describeState({ status, round, rounds }: Stated): {
  text: string;
  tone: StateTone;
  isBeating: boolean;
} {
  const at = `round ${round} of ${rounds}`;
  if (status === "running") return { text: at, tone: "accent", isBeating: true };
  if (WORKING.has(status)) return { text: status, tone: "accent", isBeating: true };
  if (status === "paused") return { text: `paused · ${at}`, tone: "warn", isBeating: false };
  if (status === "stopped") return { text: `stopped · ${at}`, tone: "plain", isBeating: false };
  if (hasFailed(status)) return { text: `${status} · ${at}`, tone: "bad", isBeating: false };
  if (isUnstarted(status)) return { text: "not started", tone: "plain", isBeating: false };
  return { text: rounds > round ? `ended · ${at}` : "completed", tone: "good", isBeating: false };
}
