import assert from "node:assert/strict";
import { test } from "node:test";
import { canStart, describeState, isAlive } from "./state.ts";

test("a state says how far the run is", () => {
  assert.equal(describeState({ status: "running", round: 3, rounds: 48 }).text, "round 3 of 48");
  assert.equal(describeState({ status: "failed", round: 3, rounds: 48 }).tone, "bad");
  assert.equal(describeState({ status: "completed", round: 48, rounds: 48 }).text, "completed");
});

test("what is over is started again only where that continues it", () => {
  assert.ok(canStart({ status: "stopped", resumable: true }));
  assert.ok(!canStart({ status: "completed", resumable: false }));
  assert.ok(!canStart({ status: "paused", resumable: true }));
  assert.ok(canStart({ status: "ready", resumable: false }));
  assert.ok(isAlive("paused"));
});
