import assert from "node:assert/strict";
import { test } from "node:test";
import type { ActionInfo } from "./agent.ts";
import { groupTurns, tellAction } from "./turns.ts";

function action(round: number, world: string, id: string): ActionInfo {
  return {
    id,
    round_num: round,
    timestamp: "",
    platform: world,
    agent_id: 1,
    agent_name: "Ada",
    action_type: "LIKE_POST",
    action_args: {},
    result: null,
    success: true,
  };
}

test("the actions of a turn stand together in the order in which they were done", () => {
  const newestFirst = [
    action(3, "reddit", "d"),
    action(2, "twitter", "c"),
    action(2, "twitter", "b"),
    action(2, "reddit", "a"),
  ];
  const turns = groupTurns(newestFirst).map((turn) => [turn.round, turn.world, turn.actions.map((one) => one.id)]);
  assert.deepEqual(turns, [
    [3, "reddit", ["d"]],
    [2, "twitter", ["b", "c"]],
    [2, "reddit", ["a"]],
  ]);
});

test("an action is told with whose words it was about, and the person's own", () => {
  const told = tellAction("CREATE_COMMENT", { content: "No.", post_content: "Yes!", post_author_name: "Bo" });
  assert.deepEqual(told, { verb: "answered", object: "Bo: “Yes!”", words: "No." });
  assert.equal(tellAction("FOLLOW", { target_user_name: "Cy" }).object, "Cy");
});

test("an action of an unknown kind is told by its name and arguments", () => {
  assert.deepEqual(tellAction("PLANT_TREE", { kind: "oak", count: 3 }), {
    verb: "plant tree",
    object: "oak, 3",
    words: "",
  });
});
