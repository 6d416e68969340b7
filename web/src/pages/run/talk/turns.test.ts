import assert from "node:assert/strict";
import { test } from "node:test";
import type { Turn } from "../../../api/types.ts";
import { describeDeed, isContinued, lookOf } from "./turns.ts";

const turn: Turn = {
  ...{ round: 1, agent_id: 0, name: "Ada", kind: "say", text: "Hello", to: "Ben" },
  ...{ opinion: null, time: null },
};

test("speech, thoughts, deeds and what comes from outside are told apart", () => {
  assert.equal(lookOf({ kind: "TALK", agent_id: 1 }), "speech");
  assert.equal(lookOf({ kind: "think", agent_id: 1 }), "thought");
  assert.equal(lookOf({ kind: "broadcast", agent_id: -1 }), "scene");
  assert.equal(lookOf({ kind: "reach_out", agent_id: 1 }), "deed");
});

test("a deed is the end of a sentence", () => {
  assert.equal(describeDeed({ kind: "REACH_OUT", text: "", to: "Ben" }), "turns to Ben");
  assert.equal(describeDeed({ kind: "relate", text: "of one mind", to: "Ben" }), "sees Ben as: of one mind");
  assert.equal(describeDeed({ kind: "wave_hands", text: "", to: null }), "wave hands");
});

test("a name is not repeated in one breath", () => {
  assert.ok(isContinued({ ...turn, text: "And?" }, turn));
  assert.ok(!isContinued({ ...turn, round: 2 }, turn));
  assert.ok(!isContinued({ ...turn, kind: "think" }, turn));
  assert.ok(!isContinued(turn, undefined));
});
