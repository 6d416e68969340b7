/** Events as a person fills them in, and as a scenario writes them. */

import type { PickedPerson } from "../../components/PeoplePicker.svelte";

export type EventKind = "broadcast" | "post" | "stance" | "leave" | "join" | "hear" | "see" | "context";

export interface EventDraft {
  kind: EventKind;
  text: string;
  /** Receivers, or those who leave; the author of a post. */
  people: PickedPerson[];
  world: string;
  claim: string;
  relation: "supports" | "denies" | "questions";
  stance: number;
}

export const EVENT_KINDS: { value: EventKind; text: string; hint: string; isOnly?: "social" | "room" }[] = [
  { value: "broadcast", text: "A message", hint: "Everybody receives it, whatever else they see." },
  { value: "post", text: "A post", hint: "It appears in feeds and can be passed on.", isOnly: "social" },
  { value: "hear", text: "Something heard", hint: "It reaches the people in the room.", isOnly: "room" },
  { value: "see", text: "Something seen", hint: "It reaches the people in the room.", isOnly: "room" },
  { value: "stance", text: "A change of mind", hint: "People think this from then on." },
  { value: "context", text: "A situation", hint: "It stands in front of everything people see from then on." },
  { value: "leave", text: "People leave", hint: "They take no turns and perceive nothing." },
  { value: "join", text: "People come back", hint: "Those who left take part again." },
];

export function startDraft(kind: EventKind = "broadcast"): EventDraft {
  return { kind, text: "", people: [], world: "", claim: "", relation: "denies", stance: 0.5 };
}

export function needsText(kind: EventKind): boolean {
  return kind !== "stance" && kind !== "leave" && kind !== "join";
}

/** The event of a scenario, or null while something is missing. */
export function buildEvent(draft: EventDraft): Record<string, unknown> | null {
  const { kind, claim, relation, world } = draft;
  const people = draft.people.map((person) => person.agent_id);
  const text = draft.text.trim();
  if (needsText(kind) && !text) return null;
  if ((kind === "leave" || kind === "join") && people.length === 0) return null;
  const where = world ? { world } : {};
  const to = people.length > 0 ? { to: people } : {};
  const says = claim ? { [relation]: claim } : {};
  switch (kind) {
    case "post":
      return { post: text, by: people[0] ?? "most_followed", ...says, ...where };
    case "stance":
      return { change: { stance: draft.stance }, ...to, ...where };
    case "leave":
    case "join":
      return { [kind]: people, ...where };
    case "context":
      return { context: [text], ...to, ...where };
    default:
      return { [kind]: text, ...says, ...to, ...where };
  }
}
