import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunRow } from "../../api/types.ts";
import { buildTree } from "./lineage.ts";

function run(id: string, parent?: [string, number]): RunRow {
  return { simulation_id: id, parent: parent ? { id: parent[0], round: parent[1] } : null } as RunRow;
}

test("forks stand below their parents, in the order of the rounds in which they branch off", () => {
  const rows = buildTree([
    run("late", ["first", 20]),
    run("first"),
    run("early", ["first", 4]),
    run("twig", ["early", 6]),
  ]);
  assert.deepEqual(
    rows.map((row) => [row.run.simulation_id, row.depth, row.parent]),
    [
      ["first", 0, null],
      ["early", 1, 0],
      ["twig", 2, 1],
      ["late", 1, 0],
    ],
  );
});

test("a fork whose parent is gone is a tree of its own, and a circle ends", () => {
  assert.deepEqual(
    buildTree([run("orphan", ["gone", 3])]).map((row) => row.depth),
    [0],
  );
  assert.equal(buildTree([run("a", ["a", 1])]).length, 1);
});
