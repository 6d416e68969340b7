import assert from "node:assert/strict";
import { test } from "node:test";
import { buildEvent, startDraft } from "./events.ts";

const vera = { agent_id: 3, name: "Vera" };

test("an event without its text is not sent", () => {
  assert.equal(buildEvent(startDraft()), null);
  assert.equal(buildEvent({ ...startDraft("leave") }), null);
});

test("a message says what it denies and whom it reaches", () => {
  const draft = { ...startDraft(), text: " The bridge stays. ", claim: "closing", people: [vera] };
  assert.deepEqual(buildEvent(draft), { broadcast: "The bridge stays.", denies: "closing", to: [3] });
});

test("a post is by one person, or by the most followed one", () => {
  assert.equal(buildEvent({ ...startDraft("post"), text: "hello" })?.["by"], "most_followed");
  assert.equal(buildEvent({ ...startDraft("post"), text: "hello", people: [vera] })?.["by"], 3);
});

test("a change of mind needs no text", () => {
  assert.deepEqual(buildEvent({ ...startDraft("stance"), stance: -1 }), { change: { stance: -1 } });
});
