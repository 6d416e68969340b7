import assert from "node:assert/strict";
import { test } from "node:test";
import {
  describeFirst,
  describeText,
  formatValue,
  nameSides,
  pairFigures,
  valueAt,
  type Comparison,
} from "./compare.ts";

const side = (id: string, name: string) => ({ id, name, status: "completed", last_round: 9 });

function compare(changes: object[], count = changes.length): Comparison {
  const first = changes.length > 0 ? { round: 4, time: "", changes, count } : null;
  const world = { world: "twitter", rounds: 9, has: [9, 9], first, by_round: [], reached: [], figures: [] };
  return { one: side("a", "rumour"), other: side("b", "rumour"), worlds: [world] } as unknown as Comparison;
}

test("values are told in words, without what is not set", () => {
  assert.equal(
    formatValue({ round: 6, world: null, broadcast: "It is closed.", to: [] }),
    "round: 6, broadcast: It is closed.",
  );
  assert.equal(describeText('{"announcements":["Town hall"]}'), "announcements: Town hall");
  assert.equal(describeText("{}"), "nothing");
  assert.equal(describeText("{cut off"), "{cut off");
});

test("where two runs part is said in a sentence", () => {
  const change = { what: "event", agent: 3, name: "Vera", one: null, other: null };
  assert.equal(
    describeFirst(compare([change], 3)),
    "The two are the same up to round 3. In round 4, on twitter, Vera acts differently, and 2 more things differ in that round.",
  );
  assert.match(describeFirst(compare([])), /^Nothing differs/);
  assert.match(describeFirst(compare([{ ...change, name: null, what: "happening" }])), /something happens in only one/);
});

test("runs of the same name are told apart by their ids", () => {
  assert.deepEqual(nameSides(compare([])), ["a", "b"]);
});

test("only figures that both runs have are overlaid, and a missing value is that before", () => {
  const figures = {
    rounds: [0, 1],
    activity: [],
    opinions: [],
    claims: {},
    figures: { mean: { twitter: [0.1, null] } },
  };
  assert.deepEqual(
    pairFigures(figures, figures, "twitter").map(({ key }) => key),
    ["mean"],
  );
  assert.deepEqual(pairFigures(figures, { ...figures, figures: {} }, "twitter"), []);
  assert.equal(valueAt([0.1, null], 1), 0.1);
});
