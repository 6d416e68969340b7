import assert from "node:assert/strict";
import { test } from "node:test";
import {
  buildAction,
  findFirst,
  formatCountdown,
  formatSpan,
  nameAction,
  prefill,
  tellPersona,
  tellProblem,
  type SeatAction,
  type SeatField,
} from "./answers.ts";

const field = (name: string, more: Partial<SeatField> = {}): SeatField => ({
  name,
  type: "text",
  is_needed: true,
  least: null,
  most: null,
  max_chars: null,
  choices: [],
  ...more,
});
const action = (kind: string, ...fields: SeatField[]): SeatAction => ({ kind, meaning: "", fields });

test("an action is written as a model writes it, and what is empty is left out", () => {
  const comment = action("CREATE_COMMENT", field("post_id", { type: "integer" }), field("content"), field("note"));
  assert.deepEqual(buildAction({ key: 1, action: comment, values: { post_id: "12", content: " Yes. ", note: " " } }), {
    action: "CREATE_COMMENT",
    post_id: 12,
    content: "Yes.",
  });
});

test("a choice is sent as it was offered, and what is no number as it was typed", () => {
  const follow = action("FOLLOW", field("user", { choices: [{ value: 7, label: "Bo" }] }));
  assert.deepEqual(buildAction({ key: 1, action: follow, values: { user: "7" } }), { action: "FOLLOW", user: 7 });
  const rate = action("RATE", field("score", { type: "integer" }));
  assert.deepEqual(buildAction({ key: 1, action: rate, values: { score: "ten" } }), { action: "RATE", score: "ten" });
});

test("the only choice is made", () => {
  const like = action("LIKE_POST", field("post_id", { choices: [{ value: 3, label: "Bo: Hello" }] }));
  assert.deepEqual(prefill(like), { post_id: "3" });
});

test("in a conversation one speaks first", () => {
  assert.equal(findFirst([action("THINK"), action("SAY")])?.kind, "SAY");
  assert.equal(findFirst([action("LIKE_POST")]), null);
});

test("what is wrong and who one is are told to a person, not to a model", () => {
  assert.equal(tellProblem("CREATE_COMMENT needs content (a text)"), "Needs content (a text)");
  assert.equal(tellPersona("# Who you are\nYou are Ada."), "You are Ada.");
});

test("times and names are told in words", () => {
  assert.deepEqual([formatCountdown(64.2), formatCountdown(-1), formatCountdown(3_725)], ["1:05", "0:00", "1:02:05"]);
  assert.deepEqual([formatSpan(120), formatSpan(60), formatSpan(45)], ["2 minutes", "1 minute", "45 seconds"]);
  assert.equal(nameAction("LIKE_POST"), "Like post");
});
