/**
 * Draws nodes and lines on two canvases, with zoom and pan by mouse, touch and keyboard.
 *
 * While the picture moves, only the nodes are drawn anew; the lines are moved as an image, and drawn when it rests.
 */

import { quadtree, type Quadtree } from "d3-quadtree";
import { select } from "d3-selection";
import { zoom, zoomIdentity, type D3ZoomEvent, type ZoomBehavior, type ZoomTransform } from "d3-zoom";
import { placeLabels, type Box, type LabelWish } from "./labels.ts";

export interface DrawnNodes {
  /** Places from 0 to 1. */
  x: Float32Array;
  y: Float32Array;
  /** In pixels, before any zoom. */
  radius: Float32Array;
  colour: string[];
  label: string[];
  /** The nodes in the order in which they get labels. */
  order: number[];
}

export interface DrawnLine {
  from: number;
  to: number;
  colour: string;
  width: number;
}

export interface Emphasis {
  selected: number | null;
  hovered: number | null;
  /** Everything else is faint; null means that nothing is. */
  near: Set<number> | null;
  /** These have a ring of this colour. */
  ringed: Set<number>;
  ring: string;
}

export interface DrawingColours {
  line: string;
  text: string;
  surface: string;
  focus: string;
}

interface Size {
  width: number;
  height: number;
}

const PAD = 26;
const MAX_STRETCH = 1.7;
const MAX_ZOOM = 40;
const REST_MS = 90;
const LARGE_PX = 5.5;
const FAINT = 0.16;
const MOUSE_REACH = 9;
const TOUCH_REACH = 24;
const MAX_WISHES = 160;
const MAX_LABEL_CHARS = 24;
const FONT = "500 11.5px 'Inter Variable', system-ui, sans-serif";

export class NodeDrawing {
  private nodes: DrawnNodes = {
    x: new Float32Array(),
    y: new Float32Array(),
    radius: new Float32Array(),
    colour: [],
    label: [],
    order: [],
  };
  private ties: Uint32Array = new Uint32Array();
  private lines: DrawnLine[] = [];
  private emphasis: Emphasis = { selected: null, hovered: null, near: null, ringed: new Set(), ring: "" };
  private colours: DrawingColours = { line: "#888", text: "#000", surface: "#fff", focus: "#000" };
  private size: Size = { width: 0, height: 0 };
  private transform: ZoomTransform = zoomIdentity;
  private drawnTransform: ZoomTransform = zoomIdentity;
  private tree: Quadtree<number> = quadtree();
  private widths = new Map<string, number>();
  private frame = 0;
  private rest: ReturnType<typeof setTimeout> | undefined;
  private readonly behaviour: ZoomBehavior<HTMLElement, unknown>;

  constructor(
    private readonly box: HTMLElement,
    private readonly below: HTMLCanvasElement,
    private readonly above: HTMLCanvasElement,
    private readonly onzoom: () => void,
  ) {
    this.behaviour = zoom<HTMLElement, unknown>()
      .scaleExtent([0.5, MAX_ZOOM])
      // The page is scrolled with one finger or the wheel alone only where the picture is not zoomed.
      .filter((event: Event) => this.isMine(event))
      .on("zoom", (event: D3ZoomEvent<HTMLElement, unknown>) => this.move(event.transform));
    select(box).call(this.behaviour).on("dblclick.zoom", null);
  }

  setNodes(nodes: DrawnNodes): void {
    const isMoved = nodes.x !== this.nodes.x;
    this.nodes = nodes;
    if (isMoved) this.plantTree();
    this.redraw();
  }

  setLines(ties: Uint32Array, lines: DrawnLine[]): void {
    this.ties = ties;
    this.lines = lines;
    this.redraw();
  }

  setEmphasis(emphasis: Emphasis): void {
    const isFaint = (emphasis.near === null) !== (this.emphasis.near === null);
    this.emphasis = emphasis;
    if (isFaint) this.drawLines();
    this.requestNodes();
  }

  setColours(colours: DrawingColours): void {
    this.colours = colours;
    this.redraw();
  }

  resize(size: Size): void {
    this.size = size;
    const scale = devicePixelRatio || 1;
    for (const canvas of [this.below, this.above]) {
      canvas.width = Math.round(size.width * scale);
      canvas.height = Math.round(size.height * scale);
      canvas.style.width = `${size.width}px`;
      canvas.style.height = `${size.height}px`;
    }
    this.behaviour.extent([
      [0, 0],
      [size.width, size.height],
    ]);
    this.behaviour.translateExtent([
      [-size.width * 0.5, -size.height * 0.5],
      [size.width * 1.5, size.height * 1.5],
    ]);
    this.plantTree();
    this.redraw();
  }

  forgetWidths(): void {
    this.widths.clear();
    this.requestNodes();
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.rest);
    select(this.box).on(".zoom", null);
  }

  get scale(): number {
    return this.transform.k;
  }

  zoomBy(factor: number): void {
    this.behaviour.scaleBy(select(this.box), factor);
  }

  panBy(x: number, y: number): void {
    this.behaviour.translateBy(select(this.box), x / this.transform.k, y / this.transform.k);
  }

  fit(): void {
    this.behaviour.transform(select(this.box), zoomIdentity);
  }

  /** Brings a node into view, without moving the picture where it is seen already. */
  show(node: number): void {
    const [x, y] = this.place(node);
    const { width, height } = this.size;
    if (x > PAD && y > PAD && x < width - PAD && y < height - PAD) return;
    this.panBy(width / 2 - x, height / 2 - y);
  }

  /** The node at a point of the box, or null. A finger is less exact than a mouse. */
  find(x: number, y: number, isTouch: boolean): number | null {
    const reach = isTouch ? TOUCH_REACH : MOUSE_REACH;
    const [left, top] = this.transform.invert([x, y]);
    const largest = 18 / this.transform.k;
    const found = this.tree.find(left, top, reach / this.transform.k + largest);
    if (found === undefined) return null;
    const [at, above] = this.place(found);
    return Math.hypot(at - x, above - y) <= this.radiusOf(found) + reach ? found : null;
  }

  /** The nearest node in a direction from another one. */
  findBeside(node: number, dx: number, dy: number): number | null {
    const [x, y] = this.place(node);
    let best: number | null = null;
    let least = Infinity;
    for (let at = 0; at < this.nodes.x.length; at++) {
      const [otherX, otherY] = this.place(at);
      const ahead = (otherX - x) * dx + (otherY - y) * dy;
      const aside = Math.abs((otherX - x) * dy) + Math.abs((otherY - y) * dx);
      const distance = ahead + aside * 2;
      if (at !== node && ahead > 1 && aside < ahead * 1.5 && distance < least) [best, least] = [at, distance];
    }
    return best;
  }

  /** Where a node is in the box, in pixels. */
  place(node: number): [number, number] {
    return this.transform.apply(this.lay(node));
  }

  private isMine(event: Event): boolean {
    if (event.type === "wheel") return (event as WheelEvent).ctrlKey || this.transform.k > 1 || this.isFocused();
    if (event instanceof MouseEvent) return event.button === 0;
    const touches = (event as TouchEvent).touches?.length ?? 0;
    return touches > 1 || this.transform.k > 1.01;
  }

  private isFocused(): boolean {
    return this.box.contains(document.activeElement);
  }

  private lay(node: number): [number, number] {
    const wide = Math.max(1, this.size.width - 2 * PAD);
    const tall = Math.max(1, this.size.height - 2 * PAD);
    const x = Math.min(wide, tall * MAX_STRETCH);
    const y = Math.min(tall, wide * MAX_STRETCH);
    return [PAD + (wide - x) / 2 + (this.nodes.x[node] ?? 0) * x, PAD + (tall - y) / 2 + (this.nodes.y[node] ?? 0) * y];
  }

  private radiusOf(node: number): number {
    return (this.nodes.radius[node] ?? 3) * Math.min(3, Math.sqrt(this.transform.k));
  }

  private plantTree(): void {
    this.tree = quadtree<number>()
      .x((node) => this.lay(node)[0])
      .y((node) => this.lay(node)[1])
      .addAll(Array.from(this.nodes.x, (_, at) => at));
  }

  private move(transform: ZoomTransform): void {
    this.transform = transform;
    const k = transform.k / this.drawnTransform.k;
    const x = transform.x - this.drawnTransform.x * k;
    const y = transform.y - this.drawnTransform.y * k;
    this.below.style.transform = `translate(${x}px, ${y}px) scale(${k})`;
    this.requestNodes();
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.drawLines(), REST_MS);
    this.onzoom();
  }

  private redraw(): void {
    this.drawLines();
    this.requestNodes();
  }

  private requestNodes(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.drawNodes());
  }

  private begin(canvas: HTMLCanvasElement): CanvasRenderingContext2D | null {
    const context = canvas.getContext("2d");
    const scale = devicePixelRatio || 1;
    context?.setTransform(scale, 0, 0, scale, 0, 0);
    context?.clearRect(0, 0, this.size.width, this.size.height);
    return context;
  }

  private drawLines(): void {
    this.drawnTransform = this.transform;
    this.below.style.transform = "";
    const context = this.begin(this.below);
    if (!context || this.size.width === 0) return;
    const count = this.ties.length / 2;
    const isQuiet = this.emphasis.near !== null || this.lines.length > 0;
    const crowd = Math.min(1, 60 / Math.sqrt(count + 1));
    context.strokeStyle = this.colours.line;
    context.globalAlpha = (isQuiet ? 0.28 : 0.6) * crowd;
    context.lineWidth = 0.8;
    context.beginPath();
    for (let at = 0; at < this.ties.length; at += 2) {
      const [x1, y1] = this.place(this.ties[at]!);
      const [x2, y2] = this.place(this.ties[at + 1]!);
      context.moveTo(x1, y1);
      context.lineTo(x2, y2);
    }
    context.stroke();
    context.globalAlpha = 0.5;
    for (const line of this.lines) this.drawArrow(context, line);
    context.globalAlpha = 1;
  }

  /** A line that bends a little, so that two that go there and back are both seen, with a head at its end. */
  private drawArrow(context: CanvasRenderingContext2D, { from, to, colour, width }: DrawnLine): void {
    const [x1, y1] = this.place(from);
    const [x2, y2] = this.place(to);
    const [dx, dy] = [x2 - x1, y2 - y1];
    const length = Math.hypot(dx, dy) || 1;
    const [middleX, middleY] = [(x1 + x2) / 2 - dy * 0.12, (y1 + y2) / 2 + dx * 0.12];
    const [alongX, alongY] = [(x2 - middleX) / (length / 2), (y2 - middleY) / (length / 2)];
    const end = this.radiusOf(to) + 1.5;
    const [endX, endY] = [x2 - alongX * end, y2 - alongY * end];
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(x1, y1);
    context.quadraticCurveTo(middleX, middleY, endX, endY);
    context.stroke();
    const head = 2.5 + width * 1.4;
    context.beginPath();
    context.moveTo(endX, endY);
    context.lineTo(endX - alongX * head - alongY * head * 0.5, endY - alongY * head + alongX * head * 0.5);
    context.lineTo(endX - alongX * head + alongY * head * 0.5, endY - alongY * head - alongX * head * 0.5);
    context.fill();
  }

  private drawNodes(): void {
    const context = this.begin(this.above);
    if (!context || this.size.width === 0) return;
    const { near, selected, hovered } = this.emphasis;
    const large: number[] = [];
    const groups = new Map<string, number[]>();
    for (let at = 0; at < this.nodes.x.length; at++) {
      const isFaint = near !== null && !near.has(at) && at !== selected && at !== hovered;
      if (!isFaint && (this.radiusOf(at) > LARGE_PX || near !== null)) large.push(at);
      else {
        const key = (isFaint ? "-" : "+") + this.nodes.colour[at]!;
        const group = groups.get(key);
        if (group) group.push(at);
        else groups.set(key, [at]);
      }
    }
    for (const [key, group] of groups) {
      context.globalAlpha = key.startsWith("-") ? FAINT : 1;
      context.fillStyle = key.slice(1);
      context.beginPath();
      for (const at of group) this.addCircle(context, at);
      context.fill();
    }
    context.globalAlpha = 1;
    large.sort((one, other) => this.nodes.radius[one]! - this.nodes.radius[other]!);
    for (const at of large) this.drawNode(context, at);
    if (hovered !== null) this.drawNode(context, hovered);
    if (selected !== null) this.drawNode(context, selected);
    this.drawLabels(context, large);
  }

  private addCircle(context: CanvasRenderingContext2D, at: number): void {
    const [x, y] = this.place(at);
    const radius = this.radiusOf(at);
    const { width, height } = this.size;
    if (x < -radius || y < -radius || x > width + radius || y > height + radius) return;
    context.moveTo(x + radius, y);
    context.arc(x, y, radius, 0, 2 * Math.PI);
  }

  private drawNode(context: CanvasRenderingContext2D, at: number): void {
    const { selected, hovered, ringed, ring } = this.emphasis;
    context.beginPath();
    this.addCircle(context, at);
    context.fillStyle = this.nodes.colour[at]!;
    context.fill();
    const isChosen = at === selected || at === hovered;
    context.strokeStyle = isChosen ? this.colours.focus : ringed.has(at) ? ring : this.colours.surface;
    context.lineWidth = at === selected ? 2.5 : isChosen || ringed.has(at) ? 1.75 : 1;
    context.stroke();
  }

  private drawLabels(context: CanvasRenderingContext2D, large: number[]): void {
    const { selected, hovered, near } = this.emphasis;
    const { width, height } = this.size;
    const first = [hovered, selected].filter((at) => at !== null);
    const others = this.nodes.order.filter((at) => !first.includes(at) && (near === null || near.has(at)));
    const chosen: number[] = [];
    const wishes: LabelWish[] = [];
    context.font = FONT;
    for (const at of [...first, ...others]) {
      if (wishes.length >= MAX_WISHES) break;
      const [x, y] = this.place(at);
      if (x < 0 || y < 0 || x > width || y > height) continue;
      chosen.push(at);
      wishes.push({ x, y, radius: this.radiusOf(at), width: this.measure(context, this.textOf(at)) });
    }
    const area: Box = { left: 2, top: 2, right: width - 2, bottom: height - 2 };
    const taken = large.map((at) => this.boxOf(at));
    const most = Math.max(6, Math.round((width * height) / 26_000));
    context.textBaseline = "middle";
    context.lineJoin = "round";
    for (const { at, x, y } of placeLabels(wishes, area, taken, most)) {
      const node = chosen[at]!;
      context.globalAlpha = node === selected || node === hovered ? 1 : 0.92;
      context.strokeStyle = this.colours.surface;
      context.lineWidth = 3.5;
      context.strokeText(this.textOf(node), x, y);
      context.fillStyle = this.colours.text;
      context.fillText(this.textOf(node), x, y);
    }
    context.globalAlpha = 1;
  }

  private boxOf(at: number): Box {
    const [x, y] = this.place(at);
    const radius = this.radiusOf(at) * 0.8;
    return { left: x - radius, top: y - radius, right: x + radius, bottom: y + radius };
  }

  private textOf(at: number): string {
    const letters = Array.from(this.nodes.label[at] ?? "");
    return letters.length > MAX_LABEL_CHARS ? `${letters.slice(0, MAX_LABEL_CHARS - 1).join("")}…` : letters.join("");
  }

  private measure(context: CanvasRenderingContext2D, text: string): number {
    let width = this.widths.get(text);
    if (width === undefined) this.widths.set(text, (width = context.measureText(text).width));
    return width;
  }
}
