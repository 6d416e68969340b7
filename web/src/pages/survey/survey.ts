/** Surveys: drafts of questions, and answers counted for charts. */

import type { components } from "../../api/schema.d.ts";

type Schemas = components["schemas"];
export type SurveyStatus = Schemas["SurveyStatus"];
export type SurveyField = Schemas["SurveyField"];
export type ChosenPeople = Schemas["ChosenPeople"];

export type FormKind = "text" | "yes/no" | "scale" | "choice";

export interface DraftQuestion {
  id: number;
  text: string;
  kind: FormKind;
  low: number;
  high: number;
  /** One choice a line. */
  choices: string;
}

let next = 1;

export function startQuestion(text = "", kind: FormKind = "text"): DraftQuestion {
  return { id: next++, text, kind, low: 0, high: 10, choices: "" };
}

export function listChoices(draft: DraftQuestion): string[] {
  return draft.choices
    .split(/[\n|]/)
    .map((choice) => choice.trim())
    .filter(Boolean);
}

/** What is wrong with a question, or null. */
export function findMistake(draft: DraftQuestion): string | null {
  if (!draft.text.trim()) return "There is no question yet.";
  if (draft.kind === "scale" && !(draft.low < draft.high)) return "The smaller number comes first.";
  if (draft.kind !== "choice") return null;
  const choices = listChoices(draft);
  if (choices.length < 2) return "A choice needs at least two lines.";
  const isDouble = new Set(choices.map((choice) => choice.toLocaleLowerCase())).size < choices.length;
  return isDouble ? "Two choices are the same." : null;
}

/** The questions as the server reads them. Fields are called q1, q2, …: texts of people are no names of columns. */
export function buildQuestions(drafts: DraftQuestion[]): unknown[] {
  return drafts.map((draft, at) => {
    const kinds: Record<FormKind, string> = {
      text: "text",
      "yes/no": "yes/no",
      scale: `integer ${draft.low}-${draft.high}`,
      choice: listChoices(draft).join("|"),
    };
    return { question: draft.text.trim(), fields: { [`q${at + 1}`]: kinds[draft.kind] } };
  });
}

export interface Bar {
  name: string;
  count: number;
}

/** How often each answer of a form was given, in the order of the form. */
export function countAnswers(field: SurveyField, rows: readonly Record<string, unknown>[]): Bar[] {
  const given = rows.map((row) => row[field.name]).filter((value) => value !== null && value !== undefined);
  if (field.kind === "choice") {
    return field.choices.map((name) => ({ name, count: given.filter((value) => value === name).length }));
  }
  const numbers = given.filter((value): value is number => typeof value === "number");
  const low = field.low ?? Math.min(...numbers);
  const high = field.high ?? Math.max(...numbers);
  if (numbers.length === 0 || high - low > 20) return [];
  return Array.from({ length: Math.round(high - low) + 1 }, (_, at) => ({
    name: String(low + at),
    count: numbers.filter((value) => Math.round(value) === low + at).length,
  }));
}

export function meanOf(field: SurveyField, rows: readonly Record<string, unknown>[]): number | null {
  const numbers = rows.map((row) => row[field.name]).filter((value): value is number => typeof value === "number");
  return numbers.length === 0 ? null : numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
}
