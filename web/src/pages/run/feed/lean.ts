/** How a post stands to a claim, in words. */

import type { ClaimInfo, Post } from "../../../api/types.ts";

const UNDECIDED = 0.15;
const LONGEST = 34;

export interface Lean {
  text: string;
  title: string;
  tone: "for" | "against" | "undecided";
}

function shorten(text: string): string {
  const letters = Array.from(text);
  return letters.length <= LONGEST
    ? text
    : `${letters
        .slice(0, LONGEST - 1)
        .join("")
        .trimEnd()}…`;
}

/** Null for a post that is about no claim. */
export function describeLean(post: Pick<Post, "claim" | "lean">, claims: readonly ClaimInfo[]): Lean | null {
  if (!post.claim) return null;
  const lean = post.lean ?? 0;
  const tone = lean > UNDECIDED ? "for" : lean < -UNDECIDED ? "against" : "undecided";
  const verb = { for: "supports", against: "denies", undecided: "questions" }[tone];
  const claim = claims.find(({ id }) => id === post.claim);
  const title = `${verb}: ${claim?.text ?? post.claim}`;
  // Where there is one claim, nobody has to read which one.
  return {
    tone,
    title,
    text: claims.length > 1 ? `${verb}: ${shorten(claim?.text ?? post.claim)}` : `${verb} the claim`,
  };
}
