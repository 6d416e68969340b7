/**
 * What the pages read and send, under short names.
 *
 * Where the OpenAPI document describes a type, it comes from there (schema.d.ts, made by `scripts/reference`).
 */

import type { components } from "./schema.d.ts";

type Schemas = components["schemas"];

export type ActionInfo = Schemas["ActionInfo"];
export type RunStatus = Schemas["RunStatus"];

export type RunState =
  | "created"
  | "ready"
  | "starting"
  | "running"
  | "paused"
  | "pausing"
  | "stopping"
  | "stopped"
  | "completed"
  | "failed"
  | "interrupted"
  | "idle"
  | "closed";

export interface WorldInfo {
  name: string;
  kind: string;
}

export interface Quality {
  verdict: string;
  reasons: string[];
}

/** A run as one row of a list. */
export interface RunRow {
  simulation_id: string;
  name: string;
  topic: string;
  status: string;
  round: number;
  rounds: number;
  people: number;
  worlds: WorldInfo[];
  cost: number | null;
  max_cost: number | null;
  calls: number;
  quality: Quality | null;
  /** Actions in each of at most 40 parts of the run so far. */
  activity: number[];
  parent: { id: string; round: number } | null;
  created_at: string | null;
  updated_at: string | null;
  error: string | null;
  /** What to do about the error. */
  hint: string | null;
  resumable: boolean;
}

export interface ClaimInfo {
  id: string;
  text: string;
  truth: boolean | null;
}

export interface Mark {
  round: number;
  kind: "event" | "intervention" | "fork" | "join" | "leave" | "pause";
  text: string;
  run_id?: string | null;
}

export interface LimitInfo {
  model: string;
  in_flight: number;
  learned: number | null;
}

/** Everything that stands in the header of a run. */
export interface RunOverview extends RunRow {
  claims: ClaimInfo[];
  /** Simulated time of round 0, and how long a round lasts. */
  start: string | null;
  round_minutes: number;
  limits: LimitInfo[];
  last_round: number;
  marks: Mark[];
}

export interface Figures {
  rounds: number[];
  activity: number[];
  /** Name -> world -> values. */
  figures: Record<string, Record<string, (number | null)[]>>;
  claims: Record<string, { reach: (number | null)[]; belief: (number | null)[] }>;
  /** For each round, how many people are in each of 11 parts of the scale from -1 to 1. */
  opinions: number[][];
}

export interface Post {
  post_id: number;
  agent_id: number;
  name: string;
  round: number;
  time: string | null;
  text: string;
  claim: string | null;
  /** Whether it supports (above 0) or denies (below 0) the claim. */
  lean: number | null;
  quoted: Post | null;
  shared: Post | null;
  likes: number;
  dislikes: number;
  shares: number;
  comments: number;
  /** The author's, when it was written. */
  opinion: number | null;
}

export interface Comment {
  comment_id: number;
  agent_id: number;
  name: string;
  round: number;
  time: string | null;
  text: string;
  likes: number;
  dislikes: number;
  opinion: number | null;
}

export interface Turn {
  round: number;
  agent_id: number;
  name: string;
  kind: string;
  text: string;
  to: string | null;
  opinion?: number | null;
  time?: string | null;
}

export interface Page<T> {
  items: T[];
  total: number | null;
  /** Gives the next page; null means that there is none. */
  next: string | null;
}

export interface Trend {
  text: string;
  posts: number;
}

export interface PersonRow {
  agent_id: number;
  name: string;
  traits: Record<string, string | number | null>;
  opinion: number | null;
  actions: number;
  followers: number;
  influence: number;
}

/** One line of a run's stream. */
export type StreamEvent =
  | {
      kind: "action";
      id: string;
      world: string;
      round: number;
      agent_id: number;
      agent_name: string;
      action: string;
      args: Record<string, unknown>;
      success: boolean;
      result: unknown;
      time: string | null;
    }
  | { kind: "marker"; id: string; world: string; name: string; round: number; content: Record<string, unknown> }
  | { kind: "state"; id: string; state: Record<string, unknown> }
  | { kind: "restarted"; id: string };

export interface Problem {
  path: string;
  text: string;
  line?: number | null;
}

export interface Example {
  name: string;
  title: string;
  text: string;
}
