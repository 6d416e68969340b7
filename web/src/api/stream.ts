/**
 * Follows a run's server-sent events through lost connections and restarts of the server, each event once and in order.
 *
 * `EventSource` gives up for good when a server that restarts answers with an error, so the stream is read by hand:
 * the id of the last whole event is sent as `Last-Event-ID`, and the server goes on exactly there.
 */

import type { Follower } from "./source.ts";
import type { StreamEvent } from "./types.ts";

const FIRST_WAIT_MS = 300;
const LONGEST_WAIT_MS = 5_000;
/** A batch is handed over at most this often, whatever comes. */
const BATCH_MS = 80;

export interface RawEvent {
  id: string;
  kind: string;
  data: string;
}

/** Takes text in pieces of any size and gives back whole events. */
export class EventParser {
  private rest = "";

  read(piece: string): RawEvent[] {
    const blocks = (this.rest + piece).split("\n\n");
    this.rest = blocks.pop() ?? "";
    return blocks.map(parseBlock).filter((event) => event !== null);
  }
}

function parseBlock(block: string): RawEvent | null {
  const event: RawEvent = { id: "", kind: "message", data: "" };
  for (const line of block.split("\n")) {
    const at = line.indexOf(":");
    if (at < 1) continue;
    const value = line.slice(at + 1).trimStart();
    if (line.startsWith("id:")) event.id = value;
    else if (line.startsWith("event:")) event.kind = value;
    else if (line.startsWith("data:")) event.data += value;
  }
  return event.data ? event : null;
}

/** A line of a stream under the names that the pages use. */
export function readEvent({ id, kind, data }: RawEvent): StreamEvent | null {
  const content = JSON.parse(data) as Record<string, any>;
  const world = String(content["platform"] ?? content["world"] ?? "");
  switch (kind) {
    case "action":
      return {
        kind,
        id,
        world,
        round: content["round_num"] ?? content["round"],
        agent_id: content["agent_id"],
        agent_name: content["agent_name"],
        action: content["action_type"],
        args: content["action_args"] ?? {},
        success: content["success"] !== false,
        result: content["result"] ?? null,
        time: content["timestamp"] ?? null,
      };
    case "marker":
      return {
        kind,
        id,
        world,
        name: String(content["event_type"] ?? ""),
        round: Number(content["round"] ?? 0),
        content,
      };
    case "state":
      return { kind, id, state: content };
    case "restarted":
      return { kind, id };
    default:
      return null;
  }
}

export function followStream(address: string, since: number, follower: Follower): () => void {
  const end = new AbortController();
  let lastId = "";
  let waiting: StreamEvent[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;

  function flush(): void {
    timer = undefined;
    const events = waiting;
    waiting = [];
    if (events.length > 0 && !end.signal.aborted) follower.onevents(events);
  }

  async function readOnce(): Promise<void> {
    const response = await fetch(lastId ? address : `${address}?since=${since}`, {
      headers: lastId ? { "last-event-id": lastId } : {},
      signal: end.signal,
    });
    if (!response.ok || !response.body) throw new Error(`the stream answered ${response.status}`);
    follower.onconnection?.(true);
    const parser = new EventParser();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      for (const raw of parser.read(value)) {
        const event = readEvent(raw);
        lastId = raw.id || lastId;
        if (event) waiting.push(event);
      }
      timer ??= setTimeout(flush, BATCH_MS);
    }
  }

  async function follow(): Promise<void> {
    let wait = FIRST_WAIT_MS;
    while (!end.signal.aborted) {
      const before = lastId;
      await readOnce().catch(() => undefined);
      if (end.signal.aborted) return;
      follower.onconnection?.(false);
      wait = lastId === before ? Math.min(wait * 2, LONGEST_WAIT_MS) : FIRST_WAIT_MS;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }

  void follow();
  return () => {
    end.abort();
    clearTimeout(timer);
  };
}
