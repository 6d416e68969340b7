/** Turns of a conversation, as they are drawn. */

import type { Turn } from "../../../api/types.ts";

/** `speech` is heard by others, a `thought` by nobody, a `deed` is told in a line, a `scene` comes from outside. */
export type TurnLook = "speech" | "thought" | "deed" | "scene";

const SPEECH = new Set(["talk", "say", "speak"]);
const THOUGHTS = new Set(["think", "thought"]);
export function lookOf(turn: Pick<Turn, "kind" | "agent_id">): TurnLook {
  // What nobody says, such as an announcement.
  if (turn.agent_id < 0) return "scene";
  const kind = turn.kind.toLowerCase();
  if (SPEECH.has(kind)) return "speech";
  if (THOUGHTS.has(kind)) return "thought";
  return "deed";
}

/** What somebody did without words, as the end of a sentence that begins with their name. */
export function describeDeed({ kind, text, to }: Pick<Turn, "kind" | "text" | "to">): string {
  const whom = to ? ` ${to}` : "";
  switch (kind.toLowerCase()) {
    case "reach_out":
      return `turns to${whom || ` ${text}`}`;
    case "attend":
      return `looks at ${text}`;
    case "relate":
      return `sees${whom} as: ${text}`;
    case "rate":
      return `rates the talk: ${text}`;
    case "move":
    case "go":
      return `goes to ${text}`;
    case "do_nothing":
      return "says nothing";
    default:
      return `${kind.toLowerCase().replaceAll("_", " ")}${whom}${text ? `: ${text}` : ""}`;
  }
}

/** Whether a turn stands right below one by the same person to the same people, and needs no name. */
export function isContinued(turn: Turn, before: Turn | undefined): boolean {
  return (
    before !== undefined &&
    before.agent_id === turn.agent_id &&
    before.to === turn.to &&
    before.round === turn.round &&
    lookOf(before) === lookOf(turn)
  );
}
