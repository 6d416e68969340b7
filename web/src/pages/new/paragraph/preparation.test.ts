import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addDocuments,
  buildRequest,
  EXAMPLE,
  findObstacle,
  formatSize,
  listStages,
  MOST_BYTES,
  nameStatus,
  readDocument,
  startRequirement,
} from "./preparation.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

test("text in any script is read, and what is none says what to do", () => {
  assert.deepEqual(readDocument("a.md", encode("老桥")), { name: "a.md", text: "老桥", bytes: 6 });
  assert.throws(() => readDocument("a.txt", encode("%PDF-1.7 ...")), /is a PDF. Save it as text/);
  assert.throws(() => readDocument("report.PDF", encode("anything")), /is a PDF/);
  assert.throws(() => readDocument("a.txt", new Uint8Array([0xff, 0xfe, 0x41])), /no text in UTF-8/);
  assert.throws(() => readDocument("a.bin", encode("a\0b")), /is no text/);
  assert.throws(() => readDocument("a.txt", encode(" \n")), /is empty/);
});

test("a document of the same name takes the place of the one before", () => {
  const [old, other, changed] = [
    ["a", "1"],
    ["b", "2"],
    ["a", "3"],
  ].map(([name = "", text = ""]) => readDocument(name, encode(text)));
  assert.ok(old && other && changed);
  assert.deepEqual(addDocuments([old, other], [changed]), [changed, other]);
});

test("what is missing or too much is said before anything is sent", () => {
  const wanted = { ...startRequirement(), text: EXAMPLE };
  assert.equal(findObstacle(wanted), null);
  assert.match(findObstacle({ ...wanted, text: " " }) ?? "", /Write a paragraph/);
  assert.equal(findObstacle({ ...wanted, text: "", documents: [{ name: "a", text: "x", bytes: 1 }] }), null);
  assert.match(findObstacle({ ...wanted, text: "x".repeat(20_001) }) ?? "", /too long/);
  const large = { name: "a", text: "x", bytes: MOST_BYTES + 1 };
  assert.match(findObstacle({ ...wanted, documents: [large] }) ?? "", /20\.0 MB are taken/);
  for (const people of ["", "0", "1.5", "1000001", "x"])
    assert.match(findObstacle({ ...wanted, people }) ?? "", /numbers/);
  assert.match(findObstacle({ ...wanted, rounds: "-1" }) ?? "", /numbers/);
});

test("what was left empty is left to the server", () => {
  assert.deepEqual(buildRequest({ ...startRequirement(), text: " Why? " }), {
    requirement: "Why?",
    documents: [],
    people: 100,
    worlds: ["twitter"],
  });
  const full = { ...startRequirement(), text: "x", rounds: "5", topic: "the bridge", model: "openai/gpt-4.1-mini" };
  const { rounds, topic, model } = buildRequest(full);
  assert.deepEqual([rounds, topic, model], [5, "the bridge", "openai/gpt-4.1-mini"]);
});

test("stages before the present one are done, and the present one is counted", () => {
  const detail = { current_stage: "generating_profiles", current_item: 3, total_items: 12 };
  const task = { status: "processing", progress: 32, message: "", progress_detail: detail };
  const views = listStages(task);
  assert.deepEqual(
    views.map(({ state, count }) => [state, count]),
    [
      ["done", ""],
      ["now", "3 of 12"],
      ["next", ""],
      ["next", ""],
    ],
  );
  assert.ok(listStages({ ...task, status: "ready", progress_detail: {} }).every(({ state }) => state === "done"));
  assert.ok(listStages({ ...task, status: "not_started", progress_detail: {} }).every(({ state }) => state === "next"));
});

test("a status and a size are short", () => {
  assert.equal(nameStatus("processing", 42), "42 %");
  assert.equal(nameStatus("not_started", 0), "not begun");
  assert.deepEqual([512, 12_400, 3_210_000].map(formatSize), ["512 bytes", "12 KB", "3.2 MB"]);
});
