/** A requirement in plain words and documents: what is asked for, how far the work is, and what is wrong with it. */

import type { components } from "../../../api/schema.d.ts";

type Schemas = components["schemas"];
export type PreparationInfo = Schemas["PreparationInfo"];
export type PreparationResult = Schemas["PreparationResult"];
export type FoundEntity = Schemas["FoundEntity"];
export type PreparationTask = Pick<Schemas["PrepareAnswer"], "status" | "progress" | "message" | "progress_detail">;

export interface DocumentText {
  name: string;
  text: string;
  bytes: number;
}

export interface Requirement {
  text: string;
  documents: DocumentText[];
  /** As they stand in their fields; empty where the server is to choose. */
  people: string;
  rounds: string;
  worlds: string[];
  topic: string;
  model: string;
}

export interface StageView {
  text: string;
  state: "done" | "now" | "next";
  /** Such as `3 of 12`; empty where there is nothing to count. */
  count: string;
}

/** What the server takes in one request, with room for the marks of JSON. */
export const MOST_BYTES = 20_000_000;
export const MOST_LETTERS = 20_000;
const MOST_DOCUMENTS = 500;
const MOST_NUMBER = 1_000_000;
/** The server's names of stages, in their order. */
const STAGES: [name: string, text: string][] = [
  ["reading", "Read the texts"],
  ["generating_profiles", "Make people of whom they name"],
  ["generating_config", "Choose topic, posts and settings"],
  ["copying_scripts", "Write the scenario"],
];

export const EXAMPLE =
  "How will the town react to the closure of the old bridge? The Eastport Town Council voted on Tuesday to close it " +
  'to cars. Mayor Helen Marsh called the closure "the only responsible choice". Tom Brennan, 52, who owns the bakery ' +
  'next to the bridge, voted against it. "They are killing this street," he said. Cyclists welcomed the plan. The ' +
  "engineer Paul Novak said the bridge is unsafe for heavy vehicles. Residents of the north side are divided.";

export function startRequirement(): Requirement {
  return { text: "", documents: [], people: "100", rounds: "", worlds: ["twitter"], topic: "", model: "" };
}

/** Read a file as text; an error says what to do with one that is none. */
export function readDocument(name: string, content: Uint8Array): DocumentText {
  if (/\.pdf$/i.test(name) || new TextDecoder().decode(content.subarray(0, 5)) === "%PDF-")
    throw new Error(`${name} is a PDF. Save it as text, or use \`shoal prepare\` in a terminal, which reads PDF.`);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch {
    throw new Error(`${name} is no text in UTF-8. Save it as plain text or Markdown.`);
  }
  if (text.includes("\0")) throw new Error(`${name} is no text. Save it as plain text or Markdown.`);
  if (!text.trim()) throw new Error(`${name} is empty.`);
  return { name, text, bytes: content.length };
}

/** Add documents; one of the same name takes the place of the one before. */
export function addDocuments(before: DocumentText[], more: DocumentText[]): DocumentText[] {
  return [...new Map([...before, ...more].map((document) => [document.name, document])).values()];
}

export function sumBytes(documents: DocumentText[]): number {
  return documents.reduce((sum, document) => sum + document.bytes, 0);
}

export function formatSize(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${Math.round(bytes / 1_000)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** Say why a number cannot be taken; null where it can. An empty one may leave the choice to the server. */
export function checkNumber(text: string, mayBeEmpty: boolean): string | null {
  if (!text.trim()) return mayBeEmpty ? null : "Say how many.";
  const value = Number(text);
  const isFine = Number.isInteger(value) && value >= 1 && value <= MOST_NUMBER;
  return isFine ? null : "A whole number from 1 to 1,000,000.";
}

/** Say why work cannot begin; null where it can. */
export function findObstacle(wanted: Requirement): string | null {
  if (!wanted.text.trim() && wanted.documents.length === 0) return "Write a paragraph, or add a document.";
  if (wanted.text.length > MOST_LETTERS) return "The paragraph is too long: put the rest of it into a document.";
  if (wanted.documents.length > MOST_DOCUMENTS) return `At most ${MOST_DOCUMENTS} documents are read: remove some.`;
  const bytes = sumBytes(wanted.documents);
  if (bytes > MOST_BYTES)
    return `The documents have ${formatSize(bytes)}, and ${formatSize(MOST_BYTES)} are taken: remove some.`;
  if (checkNumber(wanted.people, false) || checkNumber(wanted.rounds, true)) return "Correct the numbers first.";
  return null;
}

/** What the server is asked for. What was left empty is left out. */
export function buildRequest(wanted: Requirement): Record<string, unknown> {
  const [topic, model] = [wanted.topic.trim(), wanted.model.trim()];
  return {
    requirement: wanted.text.trim(),
    documents: wanted.documents.map(({ name, text }) => ({ name: name.slice(-200), text })),
    people: Number(wanted.people),
    worlds: wanted.worlds,
    ...(wanted.rounds.trim() ? { rounds: Number(wanted.rounds) } : {}),
    ...(topic ? { topic } : {}),
    ...(model ? { model } : {}),
  };
}

export function isAtWork(status: string): boolean {
  return status === "pending" || status === "preparing" || status === "processing";
}

export function nameStatus(status: string, progress: number): string {
  if (isAtWork(status)) return `${progress} %`;
  return { ready: "ready", failed: "stopped", not_started: "not begun" }[status] ?? status;
}

/** The stages of the work, with the counts of the one that it is at. */
export function listStages({ status, progress_detail: detail }: PreparationTask): StageView[] {
  const found = STAGES.findIndex(([name]) => name === detail?.["current_stage"]);
  const at = status === "ready" ? STAGES.length : found;
  const [done, total] = [Number(detail?.["current_item"] ?? 0), Number(detail?.["total_items"] ?? 0)];
  return STAGES.map(([, text], place) => ({
    text,
    state: place < at ? "done" : place === at ? "now" : "next",
    count: place === at && total > 0 ? `${done} of ${total}` : "",
  }));
}
