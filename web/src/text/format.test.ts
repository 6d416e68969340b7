import assert from "node:assert/strict";
import { test } from "node:test";
import { formatAgo, formatFigure, formatMoney, formatShare, formatSimulated, initials } from "./format.ts";

test("money under a cent is not shown as nothing", () => {
  assert.equal(formatMoney(0), "$0");
  assert.equal(formatMoney(0.003), "< $0.01");
  assert.equal(formatMoney(1.5), "$1.50");
  assert.equal(formatMoney(null), "–");
});

test("a figure has as many digits as it deserves", () => {
  assert.equal(formatFigure(0.4711), "0.47");
  assert.equal(formatFigure(-0.25), "−0.25");
  assert.equal(formatFigure(-0.001), "0.00");
  assert.equal(formatFigure(2398), "2,398");
  assert.equal(formatFigure(1_200_000), "1.2M");
  assert.equal(formatShare(0.618), "62 %");
  assert.equal(formatShare(0.012), "1.2 %");
});

test("simulated time is never moved into the reader's zone", () => {
  assert.equal(formatSimulated("2026-03-02T19:30:00"), "Mon 2 Mar, 19:30");
  assert.equal(formatSimulated("2026-03-02T19:30:00", false), "19:30");
});

test("initials work for one word and for scripts without spaces", () => {
  assert.equal(initials("Vera Lund"), "VL");
  assert.equal(initials("noor"), "N");
  assert.equal(initials("王小明"), "王");
  assert.equal(initials("محمد علي"), "مع");
});

test("how long ago is said in the largest unit", () => {
  const now = Date.parse("2026-03-02T12:00:00Z");
  assert.equal(formatAgo("2026-03-02T11:59:40Z", now), "just now");
  assert.equal(formatAgo("2026-03-02T11:57:00Z", now), "3 minutes ago");
  assert.equal(formatAgo("2026-03-01T12:00:00Z", now), "yesterday");
});
