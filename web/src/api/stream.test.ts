import assert from "node:assert/strict";
import { test } from "node:test";
import { EventParser, readEvent } from "./stream.ts";

const TEXT =
  'id: 0;twitter:12\nevent: action\ndata: {"round":3,"agent_id":1}\n\n: still here\n\nid: 0;twitter:30\nevent: state\ndata: {"runner_status":"running"}\n\n';

test("events come whole and once, however the text is cut", () => {
  for (let size = 1; size < TEXT.length; size += 3) {
    const parser = new EventParser();
    const events = [];
    for (let at = 0; at < TEXT.length; at += size) events.push(...parser.read(TEXT.slice(at, at + size)));
    assert.deepEqual(
      events.map((event) => [event.id, event.kind]),
      [
        ["0;twitter:12", "action"],
        ["0;twitter:30", "state"],
      ],
    );
  }
});

test("an action is read under the names of the pages", () => {
  const data =
    '{"platform":"twitter","round_num":3,"agent_id":1,"agent_name":"Al","action_type":"LIKE_POST","action_args":{"post_id":7},"success":true,"result":null,"timestamp":"t"}';
  const event = readEvent({ id: "1", kind: "action", data });
  assert.equal(event?.kind, "action");
  assert.ok(event?.kind === "action" && event.round === 3 && event.args["post_id"] === 7);
});
