/** A person in sentences: who they are, and what they did. */

import type { PersonRow } from "../../../api/types.ts";
import { formatNumber } from "../../../text/format.ts";
import { wordOfOpinion } from "../../../text/opinion.ts";

/** Traits that a sentence begins with; what else is known about somebody follows in a list. */
const FIRST = ["age", "gender", "profession", "group"];
/** What is shown elsewhere, or is no trait of a person but a setting. */
const HIDDEN = new Set([
  "name",
  "username",
  "user_name",
  "stance",
  "activity",
  "followers",
  "opinion",
  "persona",
  "bio",
]);

function isPlain(value: unknown): value is string | number {
  return (typeof value === "string" && value.trim() !== "") || typeof value === "number";
}

/** "52, ferry captain" */
export function describeTraits(person: PersonRow): string {
  const { age, gender, profession, group } = person.traits;
  const parts = [age, isPlain(profession) ? profession : gender, group].filter(isPlain);
  return parts.map(String).join(", ");
}

/** The traits that the sentence has not named, under readable names. */
export function listTraits(person: PersonRow): { name: string; value: string }[] {
  return Object.entries(person.traits)
    .filter(([name, value]) => !FIRST.includes(name) && !HIDDEN.has(name) && isPlain(value))
    .map(([name, value]) => ({ name: name.replaceAll("_", " "), value: String(value) }));
}

/** What somebody did in all, and what they thought after a round, in a sentence. */
export function describeDeeds(person: PersonRow, round: number): string {
  const thinks = person.opinion === null ? "" : `; ${wordOfOpinion(person.opinion)} after round ${round}`;
  const noticed = person.influence > 0 ? `, noticed ${countTimes(person.influence)} by others` : "";
  if (person.actions === 0) return `Has done nothing so far${thinks}.`;
  return `Acted ${countTimes(person.actions)}${noticed}${thinks}.`;
}

function countTimes(count: number): string {
  return count === 1 ? "once" : formatNumber(count, "time");
}
