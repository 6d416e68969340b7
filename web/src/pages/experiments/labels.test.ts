import assert from "node:assert/strict";
import { test } from "node:test";
import { measureText, placeLabels, shorten, spreadHeights, type Dot } from "./labels.ts";

const INSIDE = { left: 0, top: 0, right: 420, bottom: 240 };

function boxOf(label: { x: number; y: number; text: string }): number[] {
  return [label.x, label.y - 11, label.x + measureText(label.text), label.y + 3];
}

test("no label covers another one or a dot, however close the dots are", () => {
  const dots: Dot[] = Array.from({ length: 14 }, (_, at) => ({
    x: 150 + (at % 5) * 9,
    y: 90 + Math.floor(at / 5) * 8,
    name: `arm number ${at}`,
  }));
  const labels = [...placeLabels(dots, INSIDE).values()];
  assert.equal(labels.length, dots.length);
  const boxes = labels.map(boxOf);
  for (const [at, one] of boxes.entries()) {
    assert.ok(one[0]! >= 0 && one[2]! <= 420 && one[1]! >= 0 && one[3]! <= 240);
    for (const other of boxes.slice(at + 1)) {
      assert.ok(one[0]! >= other[2]! || one[2]! <= other[0]! || one[1]! >= other[3]! || one[3]! <= other[1]!);
    }
    for (const dot of dots) {
      assert.ok(dot.x + 5 <= one[0]! || dot.x - 5 >= one[2]! || dot.y + 5 <= one[1]! || dot.y - 5 >= one[3]!);
    }
  }
});

test("a single dot has its name beside it and no line", () => {
  const dot = { x: 100, y: 100, name: "control" };
  const label = placeLabels([dot], INSIDE).get(dot);
  assert.ok(label && label.x > 100 && label.line === null);
});

test("labels at the ends of curves stay apart and in order", () => {
  const heights = spreadHeights([100, 101, 102, 20], 0, 110);
  const sorted = [...heights].sort((one, other) => one - other);
  assert.ok(sorted.every((height, at) => at === 0 || height - sorted[at - 1]! >= 14.9));
  assert.ok(Math.max(...heights) <= 110 && heights[3]! < heights[0]!);
});

test("long names keep their beginning and their end", () => {
  assert.equal(shorten("early correction", 30), "early correction");
  assert.equal(shorten("persuasion-0.05_appeal-2.5", 13), "persua…al-2.5");
});
