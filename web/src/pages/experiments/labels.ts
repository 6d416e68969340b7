/** Places names beside dots so that none covers a dot, another name or the edge; one without room gets a line to it. */

export interface Dot {
  x: number;
  y: number;
  name: string;
}

export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export interface PlacedLabel {
  /** Where the text begins, on its base line. */
  x: number;
  y: number;
  text: string;
  /** From the dot to the name, where they are not side by side. */
  line: [number, number, number, number] | null;
}

const HEIGHT = 15;
const DOT = 7;
const GAP = 4;
const NEAR = 26;
const RADII = [12, 18, 26, 36, 48, 62, 78, 96, 120];
/** Beside first, then above and below, then between. */
const ANGLES = [0, 180, -35, 35, 215, 145, -90, 90, -60, 60, 240, 120];

/** The width of a text; letters of wide scripts take two. */
export function measureText(text: string, letter = 6.5): number {
  let width = 0;
  for (const sign of text) width += (sign.codePointAt(0) ?? 0) >= 0x2e80 ? 2 * letter : letter;
  return width;
}

function overlaps(one: Box, other: Box): boolean {
  return one.left < other.right && one.right > other.left && one.top < other.bottom && one.bottom > other.top;
}

function boxAround(dot: Dot): Box {
  return { left: dot.x - DOT, right: dot.x + DOT, top: dot.y - DOT, bottom: dot.y + DOT };
}

function* listSpots(dot: Dot, width: number): Generator<Box> {
  for (const radius of RADII) {
    for (const angle of ANGLES) {
      const [across, down] = [Math.cos((angle * Math.PI) / 180), Math.sin((angle * Math.PI) / 180)];
      const [x, y] = [dot.x + across * radius, dot.y + down * radius];
      const left = across > 0.3 ? x : across < -0.3 ? x - width : x - width / 2;
      const top = y - HEIGHT / 2;
      yield { left, top, right: left + width, bottom: top + HEIGHT };
    }
  }
}

function connect(dot: Dot, box: Box): PlacedLabel["line"] {
  const x = Math.max(box.left, Math.min(dot.x, box.right));
  const y = Math.max(box.top, Math.min(dot.y, box.bottom));
  return Math.hypot(x - dot.x, y - dot.y) > NEAR ? [dot.x, dot.y, x, y] : null;
}

/** A label for every dot for which there is room inside; those of crowded dots are placed first. */
export function placeLabels(dots: Dot[], inside: Box): Map<Dot, PlacedLabel> {
  const taken = dots.map(boxAround);
  const crowd = (dot: Dot): number =>
    dots.filter((other) => Math.abs(other.x - dot.x) < 90 && Math.abs(other.y - dot.y) < 2 * HEIGHT).length;
  const placed = new Map<Dot, PlacedLabel>();
  for (const dot of [...dots].sort((one, other) => crowd(other) - crowd(one))) {
    const width = measureText(dot.name) + GAP;
    for (const box of listSpots(dot, width)) {
      const fits =
        box.left >= inside.left && box.right <= inside.right && box.top >= inside.top && box.bottom <= inside.bottom;
      if (!fits || taken.some((other) => overlaps(box, other))) continue;
      taken.push(box);
      placed.set(dot, { x: box.left + GAP / 2, y: box.bottom - 4, text: dot.name, line: connect(dot, box) });
      break;
    }
  }
  return placed;
}

/** Moves labels of nearly the same height apart and keeps them between the ends. Returns their heights in order. */
export function spreadHeights(wanted: number[], low: number, high: number, apart = HEIGHT): number[] {
  const order = wanted.map((_, at) => at).sort((one, other) => (wanted[one] ?? 0) - (wanted[other] ?? 0));
  const found = [...wanted];
  let last = low - apart;
  for (const at of order) {
    last = Math.max(found[at] ?? 0, last + apart);
    found[at] = last;
  }
  let next = high + apart;
  for (const at of order.toReversed()) {
    next = Math.min(found[at] ?? 0, next - apart);
    found[at] = next;
  }
  return found;
}

/** A name that has room: cut in the middle, as arms differ at both ends. */
export function shorten(name: string, most: number): string {
  const letters = Array.from(name);
  if (letters.length <= most) return name;
  const half = Math.floor((most - 1) / 2);
  return `${letters.slice(0, most - 1 - half).join("")}…${letters.slice(letters.length - half).join("")}`;
}
