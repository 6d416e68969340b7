import assert from "node:assert/strict";
import { test } from "node:test";
import { foldColumns, shadeOf, type Strip } from "./strip.ts";

function strip(rounds: number, width: number): Strip {
  const all = Array.from({ length: rounds + 1 }, (_, round) => round);
  return {
    scale: { rounds, width },
    rounds: all,
    activity: all.map((round) => round % 7),
    opinions: all.map(() => [1, 2, 3]),
    activityHeight: 40,
    heatHeight: 40,
    gap: 4,
  };
}

test("a short run has a column for each round, side by side", () => {
  const columns = foldColumns(strip(10, 500));
  assert.equal(columns.length, 11);
  for (const [at, column] of columns.slice(1).entries()) assert.equal(column.from, columns[at]?.to);
});

test("a hundred thousand rounds have no more columns than pixels, and lose nobody and no peak", () => {
  const columns = foldColumns(strip(100_000, 600));
  assert.ok(columns.length <= 601, String(columns.length));
  assert.equal(
    columns.flatMap((column) => column.opinions).reduce((a, b) => a + b, 0),
    100_001 * 6,
  );
  assert.ok(columns.slice(1, -1).every((column) => column.activity === 6));
});

test("few people can be seen, and nobody leaves no colour", () => {
  assert.equal(shadeOf(0), 0);
  assert.ok(shadeOf(0.01) > 0.2);
  assert.ok(shadeOf(0.9) === 1);
});
