/** Opinion, from -1 (against) to 1 (for), as a colour and as a word. */

import { theme } from "../theme.svelte.ts";

type Rgb = [number, number, number];

function parseHex(text: string): Rgb {
  const hex = text.trim().slice(1);
  return [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)) as Rgb;
}

function mix(from: Rgb, to: Rgb, share: number): string {
  const parts = from.map((value, at) => Math.round(value + ((to[at] ?? 0) - value) * share));
  return `rgb(${parts.join(" ")})`;
}

/** A colour for canvas and SVG; the same as the tokens, in the theme that is on. */
export function colourOfOpinion(opinion: number | null | undefined): string {
  const middle = parseHex(theme.colour("--undecided"));
  if (opinion === null || opinion === undefined || Number.isNaN(opinion)) return mix(middle, middle, 0);
  const end = parseHex(theme.colour(opinion < 0 ? "--against" : "--for"));
  return mix(middle, end, Math.min(1, Math.abs(opinion)) ** 0.7);
}

export function wordOfOpinion(opinion: number | null | undefined): string {
  if (opinion === null || opinion === undefined) return "opinion not known";
  if (Math.abs(opinion) < 0.1) return "undecided";
  const strength = Math.abs(opinion) > 0.6 ? "strongly " : "";
  return strength + (opinion < 0 ? "against" : "for");
}
