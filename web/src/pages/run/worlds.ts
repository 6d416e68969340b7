/** Kinds of world, as far as pages treat them in different ways. */

const SOCIAL = new Set(["social", "twitter", "reddit"]);

/** A platform with feeds; all others are shown as conversations. */
export function isSocial(kind: string): boolean {
  return SOCIAL.has(kind);
}
