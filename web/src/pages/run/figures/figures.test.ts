import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_FIGURES } from "../live.ts";
import { describeChange, listCharts, sumActivity, valueAt } from "./figures.ts";

const figures = {
  ...NO_FIGURES,
  rounds: [0, 1, 2, 3],
  figures: {
    activity: { twitter: [0, 0.5, 0.2, 0.1], reddit: [0, 0.1, 0.1, 0.1] },
    polarisation: { twitter: [0.3, 0.31, 0.4, null], reddit: [0.2, 0.2, 0.2, 0.2] },
    unread: { twitter: [0, 0, 0, 0] },
  },
  claims: { closing: { reach: [0, 0.2, 0.55, 0.7], belief: [null, null, null, null] } },
};
const TWITTER = { name: "twitter", kind: "twitter" };
const claims = [{ id: "closing", text: "The bridge closes", truth: false }];

test("a figure that is not measured yet is the last one known", () => {
  assert.equal(valueAt([0.3, 0.4, null], 2), 0.4);
  assert.equal(valueAt([null, null], 1), null);
  assert.equal(valueAt(undefined, 3), null);
});

test("claims come first, and what was never measured is left out", () => {
  const charts = listCharts(figures, claims, TWITTER, 3);
  assert.deepEqual(
    charts.map((chart) => chart.title),
    ["Reach: “The bridge closes”", "Polarisation", "Activity"],
  );
});

test("numbers and sentences follow the round", () => {
  const at = (round: number): string[] =>
    listCharts(figures, claims, TWITTER, round).map((chart) => `${chart.number} ${chart.sentence}`);
  assert.equal(at(1)[0], "20 % of people had to do with it");
  assert.equal(at(3)[0], "70 % of people had to do with it, half by round 2");
  assert.equal(at(3)[1], "0.40 the sides drift apart: +0.10 since the start");
  assert.equal(at(3)[2], "0.10 actions per person; most in round 1");
});

test("other worlds are faint beside the one that is shown", () => {
  const chart = listCharts(figures, [], { name: "reddit", kind: "reddit" }, 3).find(({ key }) => key === "activity");
  assert.deepEqual(
    chart?.lines.map((line) => [line.name, line.isFaint]),
    [
      ["twitter", true],
      ["reddit", false],
    ],
  );
});

test("a change too small to see is not called one", () => {
  assert.equal(describeChange([0.4, 0.41], 1), "hardly changed since the start");
  assert.equal(describeChange([0.4, 0.3], 1), "−0.10 since the start");
  assert.equal(describeChange([], 0), "not measured yet");
});

test("activity is that of all worlds, or what was counted where it was not measured", () => {
  assert.deepEqual(sumActivity({ ...figures, activity: [9, 9, 9, 9] })[1], 0.6);
  assert.deepEqual(sumActivity({ ...NO_FIGURES, rounds: [0, 1], activity: [2, 3] }), [2, 3]);
});
