import assert from "node:assert/strict";
import { test } from "node:test";
import { findRound, pickTicks, placeRound, placeTicks, stepRound, timeOfRound } from "./rounds.ts";

test("a point on the strip is the round that is drawn there", () => {
  const scale = { rounds: 48, width: 960 };
  for (const round of [0, 1, 17, 48]) assert.equal(findRound(scale, placeRound(scale, round), 48), round);
});

test("rounds that are still to come cannot be chosen", () => {
  assert.equal(findRound({ rounds: 48, width: 960 }, 900, 12), 12);
  assert.equal(findRound({ rounds: 48, width: 960 }, -5, 12), 0);
  assert.equal(stepRound("ArrowRight", 12, 12), 12);
});

test("keys lead to neighbours, pages and both ends", () => {
  assert.equal(stepRound("ArrowLeft", 7, 48), 6);
  assert.equal(stepRound("Home", 7, 48), 0);
  assert.equal(stepRound("End", 7, 48), 48);
  assert.equal(stepRound("PageUp", 7, 480), 55);
  assert.equal(stepRound("a", 7, 48), null);
});

test("the first round is at the start, and so is what happens before it", () => {
  assert.equal(timeOfRound("2026-03-02T08:00:00", 30, 0), "2026-03-02T08:00:00.000Z");
  assert.equal(timeOfRound("2026-03-02T08:00:00", 30, 1), "2026-03-02T08:00:00.000Z");
  assert.equal(timeOfRound("2026-03-02T08:00:00", 30, 3), "2026-03-02T09:00:00.000Z");
  assert.equal(timeOfRound(null, 30, 3), null);
});

test("labels of the axis keep their distance at any length", () => {
  for (const rounds of [1, 7, 48, 1_000, 250_000]) {
    const ticks = pickTicks({ rounds, width: 700 }, 100);
    assert.ok(ticks.length <= 8, `${rounds}: ${ticks.length}`);
    assert.ok(ticks.length >= 2, `${rounds}: ${ticks.length}`);
  }
  assert.deepEqual(pickTicks({ rounds: 0, width: 700 }, 100), []);
});

test("labels of the axis stay on it and never touch, however long they are", () => {
  for (const wide of [20, 60, 110, 400]) {
    const ticks = placeTicks(
      { rounds: 36, width: 620 },
      80,
      (round) => `${round}`,
      () => wide,
    );
    for (const [at, tick] of ticks.entries()) {
      assert.ok(tick.left >= 0 && tick.left + wide <= 620);
      const next = ticks[at + 1];
      assert.ok(!next || tick.left + wide < next.left);
    }
    assert.equal(ticks[0]?.text, "0");
  }
});
