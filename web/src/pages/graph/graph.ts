/** The graph memory of a run: what it can be asked, and the part of it that is drawn. */

import { source } from "../../api/index.ts";
import type { DrawnLine, DrawnNodes } from "../../drawing/NodeDrawing.ts";

export interface GraphNode {
  uuid: string;
  name: string;
  labels: string[];
  summary: string;
  /** Of people, what is known of them; of others, what kind they are. */
  attributes: Record<string, unknown>;
}

export interface GraphEdge {
  uuid: string;
  source_node_uuid: string;
  target_node_uuid: string;
  name: string;
  fact: string;
  valid_at: string | null;
  invalid_at: string | null;
  episodes: string[];
  attributes: { times: number };
}

export interface GraphPicture {
  nodes: GraphNode[];
  edges: GraphEdge[];
  /** Where each node is drawn, from 0 to 1. */
  places: [number, number][];
  entities: number;
  facts: number;
}

export interface Episode {
  event: string;
  world: string;
  round: number;
  time: string;
  text: string;
}

export interface Fact {
  source: string;
  relation: string;
  target: string;
  world: string;
  since: number;
  until: number | null;
  times: number;
  lean: number | null;
  evidence: Episode[];
  sentence: string;
}

export interface GraphAnswer {
  question: string;
  people: string[];
  words: string[];
  facts: Fact[];
  episodes: Episode[];
  views: Record<string, Record<string, number>>;
  notes: string[];
}

/** `person`, `claim`, `topic`, `group` or `world`. */
export function kindOf(node: GraphNode): string {
  return (node.labels[node.labels.length - 1] ?? "").toLowerCase();
}

export function readGraph(run: string): Promise<GraphPicture> {
  return source.ask("GET", `graph/data/${run}`, { max_nodes: 250, max_edges: 900, places: true });
}

export function askGraph(run: string, question: string): Promise<GraphAnswer> {
  return source.ask("GET", `graph/ask/${run}`, { question, limit: 12 });
}

/** The person and the round of an action, by its id: `twitter-29-74-0`. */
export function readEvent(event: string): { world: string; round: number; agent: number } | null {
  const found = /^(.+)-(\d+)-(\d+)-[^-]+$/.exec(event);
  return found ? { world: found[1]!, round: Number(found[2]), agent: Number(found[3]) } : null;
}

export const KIND_COLOURS: Record<string, `--${string}`> = {
  person: "--accent",
  claim: "--against",
  topic: "--for",
  group: "--violet",
  world: "--warn",
};

export function buildGraph(
  picture: GraphPicture,
  colour: (kind: string) => string,
): { nodes: DrawnNodes; ties: Uint32Array } {
  const positions = new Map(picture.nodes.map((node, at) => [node.uuid, at]));
  const pairs = picture.edges.flatMap((edge) => {
    const one = positions.get(edge.source_node_uuid);
    const other = positions.get(edge.target_node_uuid);
    return one === undefined || other === undefined || one === other ? [] : [one, other];
  });
  const sizes = picture.nodes.map(() => 0);
  for (const at of pairs) sizes[at]! += 1;
  const most = Math.max(1, ...sizes);
  return {
    nodes: {
      x: Float32Array.from(picture.places, (place) => place[0]),
      y: Float32Array.from(picture.places, (place) => place[1]),
      radius: Float32Array.from(sizes, (size) => 4 + 10 * Math.sqrt(size / most)),
      colour: picture.nodes.map((node) => colour(kindOf(node))),
      label: picture.nodes.map((node) => node.name),
      order: [...sizes.keys()].sort((one, other) => sizes[other]! - sizes[one]!),
    },
    ties: Uint32Array.from(pairs),
  };
}

export function linesOf(picture: GraphPicture, node: number, colour: string): DrawnLine[] {
  const positions = new Map(picture.nodes.map((one, at) => [one.uuid, at]));
  const uuid = picture.nodes[node]?.uuid;
  return picture.edges
    .filter((edge) => edge.source_node_uuid === uuid || edge.target_node_uuid === uuid)
    .map((edge) => ({
      from: positions.get(edge.source_node_uuid) ?? node,
      to: positions.get(edge.target_node_uuid) ?? node,
      colour,
      width: 1 + Math.min(2, Math.log2(1 + edge.attributes.times) / 2),
    }))
    .filter((line) => line.from !== line.to);
}
