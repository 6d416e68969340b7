/** Where labels go, so that none lies on another or on a large node. */

export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export interface LabelWish {
  x: number;
  y: number;
  /** How far from the middle of its node a label must stay. */
  radius: number;
  width: number;
}

export interface PlacedLabel {
  /** Which wish it fulfils. */
  at: number;
  x: number;
  y: number;
}

export const LABEL_HEIGHT = 14;
const GAP = 4;

function overlaps(one: Box, other: Box): boolean {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}

/** The boxes that a label may take: beside its node, or above or below it. */
function listBoxes({ x, y, radius, width }: LabelWish): Box[] {
  const half = LABEL_HEIGHT / 2;
  const away = radius + GAP;
  const box = (left: number, top: number): Box => ({ left, top, right: left + width, bottom: top + LABEL_HEIGHT });
  return [
    box(x + away, y - half),
    box(x - away - width, y - half),
    box(x - width / 2, y + away - 2),
    box(x - width / 2, y - away - LABEL_HEIGHT + 2),
  ];
}

/** Places as many labels as fit, in the order of the wishes. `taken` are boxes that no label may touch. */
export function placeLabels(wishes: LabelWish[], area: Box, taken: Box[], most: number): PlacedLabel[] {
  const placed: PlacedLabel[] = [];
  const boxes: Box[] = [];
  for (const [at, wish] of wishes.entries()) {
    if (placed.length >= most) break;
    const own = { x: wish.x, y: wish.y };
    const free = listBoxes(wish).find(
      (box) =>
        box.left >= area.left &&
        box.right <= area.right &&
        box.top >= area.top &&
        box.bottom <= area.bottom &&
        !boxes.some((other) => overlaps(box, other)) &&
        !taken.some((other) => !isAround(other, own) && overlaps(box, other)),
    );
    if (!free) continue;
    boxes.push(free);
    placed.push({ at, x: free.left, y: free.top + LABEL_HEIGHT / 2 });
  }
  return placed;
}

function isAround(box: Box, { x, y }: { x: number; y: number }): boolean {
  return Math.abs((box.left + box.right) / 2 - x) < 0.5 && Math.abs((box.top + box.bottom) / 2 - y) < 0.5;
}
