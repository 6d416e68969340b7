import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunOverview } from "../../../api/types.ts";
import { describeNotice } from "./notices.ts";

const run = { simulation_id: "sim_1", status: "running", error: null, hint: null, resumable: false } as RunOverview;

test("a failed run says why, what to do, and the command for it", () => {
  const failed = { ...run, status: "failed", error: "No key.", hint: "Set OPENAI_API_KEY.", resumable: true };
  const notice = describeNotice(failed, null);
  assert.equal(notice?.text, "No key. Set OPENAI_API_KEY.");
  assert.equal(notice?.command, "shoal resume sim_1");
});

test("a run that cannot be resumed offers nothing that would not work", () => {
  const notice = describeNotice({ ...run, status: "failed", error: "The disk is full." }, null);
  assert.equal(notice?.command, null);
});

test("a paused run says what it waits for", () => {
  assert.equal(describeNotice({ ...run, status: "paused" }, "the model server does not answer")?.tone, "warn");
  assert.equal(describeNotice({ ...run, status: "paused" }, "the budget")?.text, "the budget");
  assert.equal(describeNotice(run, "a person at the keyboard")?.title, "The run waits");
});

test("where all is well nothing is said", () => {
  assert.equal(describeNotice(run, null), null);
  assert.equal(describeNotice({ ...run, status: "completed" }, null), null);
});
