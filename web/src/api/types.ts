/**
 * What the pages read and send, under short names.
 *
 * Where the OpenAPI document describes a type, it comes from there (schema.d.ts, made by `scripts/reference`).
 */

import type { components } from "./schema.d.ts";

type Schemas = components["schemas"];

export type ActionInfo = Schemas["ActionInfo"];
export type RunStatus = Schemas["RunStatus"];

export type WorldInfo = Schemas["WorldLabel"];
export type Quality = Schemas["QualityCard"];
/** A run as one row of a list. */
export type RunRow = Schemas["RunCard"];
export type ClaimInfo = Schemas["ClaimCard"];
export type Mark = Schemas["TimelineMark"];
/** Everything that stands in the header of a run. */
export type RunOverview = Schemas["RunHeader"];
export type Figures = Schemas["RunFigures"];
export type Post = Schemas["PostCard"];
export type Comment = Schemas["CommentCard"];
export type Turn = Schemas["TalkTurn"];
export type Trend = Schemas["TrendCount"];
export type PersonRow = Schemas["PersonCard"];

/** A conversation of two as a row of a list. */
export interface Conversation {
  conversation: number;
  people: { agent_id: number; name: string }[];
  lines: number;
  last_round: number | null;
  last_text: string;
}

export interface Page<T> {
  items: T[];
  total: number | null;
  /** Gives the next page; null means that there is none. */
  next: string | null;
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

export type Problem = Schemas["TextProblem"];
export type Example = Schemas["ExampleScenario"];
