import assert from "node:assert/strict";
import { test } from "node:test";
import { listValues } from "./values.ts";

test("what is nested goes below its name", () => {
  assert.deepEqual(listValues({ mind: "heuristic", before: { stance: 0.22991, moved: false } }), [
    { name: "mind", value: "heuristic", depth: 0 },
    { name: "before", value: "", depth: 0 },
    { name: "stance", value: "0.2299", depth: 1 },
    { name: "moved", value: "no", depth: 1 },
  ]);
});

test("each of several things is one row", () => {
  const rows = listValues({ "posts in sight": [{ post: 7, by: "Noor", leans: -0.56 }], answers: [], left: null });
  assert.deepEqual(
    rows.map((row) => `${row.name}|${row.value}`),
    ["posts in sight|", "|post 7, by Noor, leans -0.56", "answers|none", "left|–"],
  );
});
