/** Changes of settings, as a person types them. */

/** What is often changed, with an example of a value. Any other path of a scenario works, too. */
export const COMMON_CHANGES: Record<string, { value: string; hint: string }> = {
  "mind.persuasion": { value: "0.2", hint: "How far one agreeable post pulls, 0 to 1." },
  "mind.confidence": { value: "0.3", hint: "Opinions further away do not persuade, 0 to 2." },
  "mind.talkativeness": { value: "2", hint: "Multiplies the chance to write, 0 to 10." },
  "mind.attention": { value: "1", hint: "How many opinions count in one turn." },
  "worlds.twitter.feed.echo_chamber": { value: "0.8", hint: "How much feeds prefer the like-minded, 0 to 1." },
  rounds: { value: "96", hint: "How long it goes on." },
};

/** Numbers, true, false, null, lists and mappings are read as such; everything else is a text. */
export function readValue(text: string): unknown {
  const trimmed = text.trim();
  try {
    return JSON.parse(trimmed) as unknown;
  } catch {
    return trimmed;
  }
}
