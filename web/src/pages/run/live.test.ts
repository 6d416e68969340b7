import assert from "node:assert/strict";
import { test } from "node:test";
import type { Figures, Post, StreamEvent } from "../../api/types.ts";
import { LiveTally, NO_FIGURES, addReactions, mergeFigures } from "./live.ts";

function act(round: number, action: string, args: Record<string, unknown> = {}, success = true): StreamEvent {
  const at = { id: "", world: "twitter", round, agent_id: 1, agent_name: "Al", time: null, result: null };
  return { kind: "action", ...at, action, args, success };
}

function end(world: string, round: number): StreamEvent {
  return { kind: "marker", id: "", world, name: "round_end", round, content: {} };
}

test("new posts are those of rounds after the one that is shown", () => {
  const tally = new LiveTally();
  tally.add([
    act(4, "CREATE_POST"),
    act(5, "REPOST"),
    act(5, "QUOTE_POST"),
    act(6, "CREATE_POST"),
    act(6, "LIKE_POST"),
  ]);
  assert.equal(tally.countWritten("twitter", 4, 6), 3);
  assert.equal(tally.countWritten("twitter", 4, 5), 2);
  assert.equal(tally.countWritten("reddit", 0, 9), 0);
});

test("what was refused is not new", () => {
  const tally = new LiveTally();
  tally.add([act(4, "REPOST", {}, false)]);
  assert.equal(tally.countWritten("twitter", 0, 9), 0);
});

test("a round is over when all worlds have ended it", () => {
  const tally = new LiveTally();
  assert.equal(tally.lastRound(), -1);
  assert.ok(tally.add([end("twitter", 3), end("reddit", 2)]));
  assert.equal(tally.lastRound(), 2);
  assert.ok(!tally.add([act(4, "LIKE_POST")]));
});

test("a million events leave no more behind than the rounds they belong to", () => {
  const tally = new LiveTally();
  for (let round = 0; round < 100; round++) {
    tally.add(Array.from({ length: 10_000 }, () => act(round, "CREATE_POST")));
    tally.forget("twitter", round - 5);
  }
  assert.equal(tally.countWritten("twitter", 0, 89), 0);
  assert.equal(tally.countWritten("twitter", 0, 99), 50_000);
});

test("a run that starts over is counted from nothing", () => {
  const tally = new LiveTally();
  tally.add([act(4, "CREATE_POST"), { kind: "restarted", id: "" }, act(1, "CREATE_POST")]);
  assert.equal(tally.countWritten("twitter", 0, 9), 1);
});

test("reactions are added to the posts they are to, and nothing else is built anew", () => {
  const post = { post_id: 7, likes: 1, dislikes: 0, shares: 0, comments: 0 } as Post;
  const other = { ...post, post_id: 8 };
  const posts = [post, other];
  const events = [
    act(5, "LIKE_POST", { post_id: 7 }),
    act(5, "QUOTE_POST", { quoted_id: 7, new_post_id: 8 }),
    act(4, "LIKE_POST", { post_id: 7 }),
  ];
  const next = addReactions(posts, events, "twitter", 4);
  assert.deepEqual([next[0]?.likes, next[0]?.shares], [2, 1]);
  assert.equal(next[1], other);
  assert.equal(addReactions(posts, events, "reddit", 4), posts);
});

test("figures of later rounds are put behind, and overlapping ones replaced", () => {
  const figures = (rounds: number[], value: number): Figures => ({
    ...NO_FIGURES,
    rounds,
    activity: rounds.map(() => value),
    opinions: rounds.map(() => [value]),
    figures: { activity: { twitter: rounds.map(() => value) } },
    claims: { bridge: { reach: rounds.map(() => value), belief: rounds.map(() => null) } },
  });
  const merged = mergeFigures(figures([0, 1, 2], 1), figures([2, 3], 5));
  assert.deepEqual(merged.rounds, [0, 1, 2, 3]);
  assert.deepEqual(merged.activity, [1, 1, 5, 5]);
  assert.deepEqual(merged.figures["activity"]?.["twitter"], [1, 1, 5, 5]);
  assert.deepEqual(merged.claims["bridge"]?.reach, [1, 1, 5, 5]);
  assert.deepEqual(mergeFigures(merged, NO_FIGURES), merged);
});

test("a series that begins later has no values before", () => {
  const known = { ...NO_FIGURES, rounds: [0, 1], activity: [1, 1], opinions: [[1], [1]] };
  const fresh = { ...NO_FIGURES, rounds: [2], activity: [1], opinions: [[1]], figures: { spread: { reddit: [0.5] } } };
  assert.deepEqual(mergeFigures(known, fresh).figures["spread"]?.["reddit"], [null, null, 0.5]);
});
