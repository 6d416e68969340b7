import assert from "node:assert/strict";
import { test } from "node:test";
import type { Mark } from "../../../api/types.ts";
import { describeGroup, placeMarks } from "./marks.ts";

const mark = (round: number, text: string): Mark => ({ round, kind: "event", text, run_id: null });
const measure = (text: string): number => text.length * 6.2;

function draw(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 1103515245 + 12345) % 2 ** 31) / 2 ** 31;
}

test("labels never touch one another, at any width and for any marks", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = draw(seed);
    const rounds = 1 + Math.floor(random() * 200);
    const width = 240 + random() * 1200;
    const lanes = 1 + Math.floor(random() * 3);
    const marks = Array.from({ length: Math.floor(random() * 30) }, () =>
      mark(Math.floor(random() * (rounds + 1)), "an event of some length ".repeat(1 + random() * 3)),
    );
    const groups = placeMarks(marks, { rounds, width, lanes, measure });
    assert.equal(groups.flatMap((group) => group.marks).length, marks.length);
    const labels = groups.flatMap((group) => (group.label ? [group.label] : []));
    for (const [at, a] of labels.entries()) {
      assert.ok(a.left >= 0 && a.left + a.width <= width + 0.001, `seed ${seed}: a label leaves the strip`);
      for (const b of labels.slice(at + 1)) {
        if (a.lane !== b.lane) continue;
        assert.ok(a.left + a.width <= b.left || b.left + b.width <= a.left, `seed ${seed}: ${a.text} / ${b.text}`);
      }
    }
    for (const group of groups) {
      for (const label of labels) {
        const crosses = group.x > label.left && group.x < label.left + label.width;
        assert.ok(!(crosses && group.label && group.label.lane < label.lane), `seed ${seed}: a line crosses a label`);
      }
    }
  }
});

test("two marks side by side get two lanes, both labels whole", () => {
  const groups = placeMarks([mark(10, "town hall"), mark(12, "a denial by the council")], {
    rounds: 48,
    width: 900,
    lanes: 2,
    measure,
  });
  assert.deepEqual(
    groups.map((group) => group.label?.isCut),
    [false, false],
  );
});

test("marks of one round are one mark, which says how many", () => {
  const groups = placeMarks([mark(3, "first"), mark(3, "second"), mark(3, "third")], {
    rounds: 48,
    width: 900,
    lanes: 2,
    measure,
  });
  assert.equal(groups.length, 1);
  assert.equal(describeGroup(groups[0]?.marks ?? []), "first +2");
});

test("a mark at the end has its label at its left", () => {
  const [group] = placeMarks([mark(48, "the last word")], { rounds: 48, width: 900, lanes: 1, measure });
  assert.ok(group?.label && group.label.left + group.label.width <= 900 && !group.label.isCut);
});
