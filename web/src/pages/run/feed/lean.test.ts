import assert from "node:assert/strict";
import { test } from "node:test";
import { describeLean } from "./lean.ts";

const closing = { id: "closing", text: "The old bridge will be closed for good", truth: false };

test("a post supports, denies or questions a claim", () => {
  const read = (lean: number | null): string | undefined => describeLean({ claim: "closing", lean }, [closing])?.text;
  assert.equal(read(1), "supports the claim");
  assert.equal(read(-0.4), "denies the claim");
  assert.equal(read(0.1), "questions the claim");
  assert.equal(read(null), "questions the claim");
});

test("a post about nothing has no tag", () => {
  assert.equal(describeLean({ claim: null, lean: 0.9 }, [closing]), null);
});

test("with several claims it says which, and a long one is cut between letters", () => {
  const smiling = { id: "b", text: "🙂".repeat(60), truth: null };
  const lean = describeLean({ claim: "b", lean: 1 }, [closing, smiling]);
  assert.equal(lean?.text, `supports: ${"🙂".repeat(33)}…`);
  assert.equal(lean?.title, `supports: ${"🙂".repeat(60)}`);
});
