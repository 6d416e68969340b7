import assert from "node:assert/strict";
import { test } from "node:test";
import { buildQuestions, countAnswers, findMistake, meanOf, startQuestion, type SurveyField } from "./survey.ts";

test("questions are sent with a form for each", () => {
  const choice = { ...startQuestion("Which?", "choice"), choices: "left\n right \n\nnone" };
  const scale = { ...startQuestion("How much?", "scale"), low: 1, high: 5 };
  assert.deepEqual(buildQuestions([choice, scale, startQuestion(" Why? ")]), [
    { question: "Which?", fields: { q1: "left|right|none" } },
    { question: "How much?", fields: { q2: "integer 1-5" } },
    { question: "Why?", fields: { q3: "text" } },
  ]);
});

test("a mistake is found before anybody is asked", () => {
  assert.ok(findMistake(startQuestion("")));
  assert.ok(findMistake({ ...startQuestion("Which?", "choice"), choices: "one" }));
  assert.ok(findMistake({ ...startQuestion("Which?", "choice"), choices: "Yes\nyes" }));
  assert.ok(findMistake({ ...startQuestion("How?", "scale"), low: 5, high: 5 }));
  assert.equal(findMistake(startQuestion("Why?")), null);
});

test("answers are counted in the order of the form, and nobody twice", () => {
  const field: SurveyField = { name: "q1", kind: "choice", choices: ["yes", "no"], low: null, high: null };
  const rows = [{ q1: "no" }, { q1: "yes" }, { q1: "no" }, { q1: null }];
  assert.deepEqual(countAnswers(field, rows), [
    { name: "yes", count: 1 },
    { name: "no", count: 2 },
  ]);
  const scale: SurveyField = { name: "q1", kind: "integer", choices: [], low: 0, high: 2 };
  const numbers = [{ q1: 2 }, { q1: 2 }, { q1: 0 }];
  assert.deepEqual(
    countAnswers(scale, numbers).map((bar) => bar.count),
    [1, 0, 2],
  );
  assert.equal(meanOf(scale, numbers), 4 / 3);
});
