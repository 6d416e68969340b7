import assert from "node:assert/strict";
import { test } from "node:test";
import { countUpTo, findEntry, findOpinion } from "./bundled.ts";

test("reactions are counted up to a round", () => {
  assert.equal(countUpTo([1, 1, 3, 7], 0), 0);
  assert.equal(countUpTo([1, 1, 3, 7], 3), 3);
  assert.equal(countUpTo([1, 1, 3, 7], 99), 4);
  assert.equal(countUpTo(undefined, 5), 0);
});

test("an opinion is the mean over the worlds that know one", () => {
  assert.equal(
    findOpinion(
      [
        [
          [0, 4],
          [0.2, 0.6],
        ],
        [[2], [1]],
      ],
      1,
    ),
    0.2,
  );
  assert.equal(
    findOpinion(
      [
        [
          [0, 4],
          [0.2, 0.6],
        ],
        [[2], [1]],
      ],
      4,
    ),
    0.8,
  );
  assert.equal(findOpinion([], 4), null);
});

test("an answer about the nearest round before stands for a round between", () => {
  const route = "simulation/a/network";
  const entries = [
    { route, values: { world: "x" }, answer: { people: [1], round: 9 } },
    { route, values: { world: "x", round: 2 }, answer: { people: null, round: 2 } },
    { route, values: { world: "x", round: 6 }, answer: { people: null, round: 6 } },
  ];
  assert.deepEqual(findEntry(entries, route, { world: "x", round: 5 }), { people: [1], round: 2 });
  assert.deepEqual(findEntry(entries, route, { world: "x", max_nodes: 7 }), { people: [1], round: 9 });
  assert.deepEqual(findEntry(entries, route, { world: "x", round: 0 }), { people: [1], round: 9 });
  assert.equal(findEntry(entries, route, { world: "y" }), undefined);
});

test("turns of a round are those of that round only", () => {
  const route = "simulation/a/explain";
  const entries = [
    { route, values: { agent: 3, round: 2, world: "x" }, answer: ["x"] },
    { route, values: { agent: 3, round: 2, world: "y" }, answer: ["y"] },
  ];
  assert.deepEqual(findEntry(entries, route, { agent: 3, round: 2 }), ["x", "y"]);
  assert.deepEqual(findEntry(entries, route, { agent: 3, round: 1 }), []);
});
