import assert from "node:assert/strict";
import { test } from "node:test";
import { LABEL_HEIGHT, placeLabels, type Box, type LabelWish } from "./labels.ts";

const AREA: Box = { left: 0, top: 0, right: 600, bottom: 400 };

function boxOf(wish: LabelWish, placed: { x: number; y: number }): Box {
  const top = placed.y - LABEL_HEIGHT / 2;
  return { left: placed.x, top, right: placed.x + wish.width, bottom: top + LABEL_HEIGHT };
}

test("labels of a crowd never overlap and stay inside", () => {
  const wishes = Array.from({ length: 300 }, (_, at) => ({
    x: (at * 97) % 600,
    y: (at * 57) % 400,
    radius: 4 + (at % 7),
    width: 30 + ((at * 13) % 90),
  }));
  const placed = placeLabels(wishes, AREA, [], 300);
  const boxes = placed.map((label) => boxOf(wishes[label.at]!, label));
  assert.ok(placed.length > 20);
  for (const [at, one] of boxes.entries()) {
    assert.ok(one.left >= 0 && one.right <= 600 && one.top >= 0 && one.bottom <= 400);
    for (const other of boxes.slice(at + 1)) {
      const isApart =
        one.right <= other.left || other.right <= one.left || one.bottom <= other.top || other.bottom <= one.top;
      assert.ok(isApart);
    }
  }
});

test("the first wishes are fulfilled first, and no more than asked for", () => {
  const wishes = Array.from({ length: 10 }, (_, at) => ({ x: 300, y: 20 + at * 40, radius: 5, width: 60 }));
  assert.deepEqual(
    placeLabels(wishes, AREA, [], 3).map((label) => label.at),
    [0, 1, 2],
  );
});

test("a label avoids the nodes of others but may stand beside its own", () => {
  const own: Box = { left: 90, top: 90, right: 110, bottom: 110 };
  const other: Box = { left: 112, top: 90, right: 160, bottom: 110 };
  const [label] = placeLabels([{ x: 100, y: 100, radius: 10, width: 50 }], AREA, [own, other], 5);
  assert.ok(label && label.x + 50 <= 90);
});
