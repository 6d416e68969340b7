/** An answer in the making: from a form to what a model would write, and what is told in words. */

import type { components } from "../../api/schema.d.ts";

type Schemas = components["schemas"];
export type SeatView = Schemas["SeatView"];
export type TurnForm = Schemas["TurnForm"];
export type SeatAction = Schemas["SeatAction"];
export type SeatField = Schemas["SeatField"];
export type SightLine = Schemas["SightLine"];
export type AnswerProblem = Schemas["AnswerProblemInfo"];
export type SeatStatus = Schemas["SeatStatus"];
export type Otherwise = "mind" | "nothing";

/** Who decides when the time for a turn is over. */
export const OTHERWISE: Record<Otherwise, string> = {
  mind: "their own mind decides",
  nothing: "they do nothing",
};
export const DECIDED: Record<Otherwise, string> = {
  mind: "their own mind decided",
  nothing: "they did nothing",
};
export const NOTHING = "DO_NOTHING";
/** An action that is being written down. Values are as inputs hold them. */
export interface DraftAction {
  key: number;
  action: SeatAction;
  values: Record<string, string>;
}

/** The action as a model would write it; what is empty is left out. */
export function buildAction({ action, values }: DraftAction): Record<string, unknown> {
  const given: Record<string, unknown> = { action: action.kind };
  for (const field of action.fields) {
    const value = (values[field.name] ?? "").trim();
    if (value !== "") given[field.name] = readValue(field, value);
  }
  return given;
}

function readValue(field: SeatField, value: string): unknown {
  const choice = field.choices.find((one) => String(one.value) === value);
  if (choice) return choice.value;
  const isNumber = field.type === "integer" || field.type === "number";
  if (isNumber && Number.isFinite(Number(value))) return Number(value);
  if (field.type === "boolean") return value === "true";
  return field.type === "list" ? value.split("\n").filter(Boolean) : value;
}

/** What tells a turn from others of its seat. */
export function nameTurn(turn: TurnForm): string {
  return `${turn.world} ${turn.round}`;
}

/** `CREATE_POST` as words. */
export function nameAction(kind: string): string {
  const words = kind.toLowerCase().replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A value for every field that has only one choice. */
export function prefill(action: SeatAction): Record<string, string> {
  const only = action.fields.filter((field) => field.is_needed && field.choices.length === 1);
  return Object.fromEntries(only.map((field) => [field.name, String(field.choices[0]!.value)]));
}

/** What a person in a conversation does first: they speak. */
export function findFirst(actions: SeatAction[]): SeatAction | null {
  return ["SAY", "TALK", "RATE"].map((kind) => actions.find((one) => one.kind === kind)).find(Boolean) ?? null;
}

/** `4:05`, or `1:02:05`. */
export function formatCountdown(seconds: number): string {
  const whole = Math.max(Math.ceil(seconds), 0);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  const last = String(whole % 60).padStart(2, "0");
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, "0")}:${last}` : `${minutes}:${last}`;
}

/** `2 minutes`. */
export function formatSpan(seconds: number): string {
  const [size, unit] = seconds >= 3600 ? [3600, "hour"] : seconds >= 60 ? [60, "minute"] : [1, "second"];
  const count = Math.round((seconds / size) * 10) / 10;
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

/** `10:02:11` of a moment, on this machine's clock. */
export function formatClock(moment: string): string {
  return new Date(moment).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

/** What is wrong with an action, for a person and not for a model: without the name of the action. */
export function tellProblem(message: string): string {
  return message.replace(/^[A-Z_]+ needs /, "Needs ");
}

/** Who the agent is, without the heading that a prompt has. */
export function tellPersona(persona: string): string {
  return persona.replace(/^#[^\n]*\n+/, "").trim();
}

/** The words that an action wrote or said. */
export function findText(args: Record<string, unknown>): string {
  const found = ["content", "quote_content", "message"]
    .map((name) => args[name])
    .find((value) => typeof value === "string");
  return typeof found === "string" ? found : "";
}
