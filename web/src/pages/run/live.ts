/** What came over the stream of a run, in numbers: as much memory after an hour as after a minute. */

import type { Figures, Post, StreamEvent } from "../../api/types.ts";

const POSTING = new Set(["CREATE_POST", "QUOTE_POST", "REPOST"]);
const SPEAKING = new Set(["TALK", "SAY", "THINK", "REACH_OUT"]);

/** Counts of one world by round. Rounds that everybody has seen are forgotten. */
interface WorldTally {
  ended: number;
  /** What appears in a feed or a conversation. */
  written: Map<number, number>;
}

export class LiveTally {
  private worlds = new Map<string, WorldTally>();

  /** Take events in. Returns whether a round ended or the state changed, so that figures have to be asked for anew. */
  add(events: readonly StreamEvent[]): boolean {
    let isNewRound = false;
    for (const event of events) {
      if (event.kind === "action") {
        if (event.success && (POSTING.has(event.action) || SPEAKING.has(event.action))) {
          const { written } = this.of(event.world);
          written.set(event.round, (written.get(event.round) ?? 0) + 1);
        }
      } else if (event.kind === "marker" && event.name === "round_end") {
        const world = this.of(event.world);
        world.ended = Math.max(world.ended, event.round);
        isNewRound = true;
      } else if (event.kind === "restarted") {
        this.worlds.clear();
        isNewRound = true;
      }
    }
    return isNewRound;
  }

  /** The last round that every world which sent something has ended; -1 before the first. */
  lastRound(): number {
    return this.worlds.size === 0 ? -1 : Math.min(...Array.from(this.worlds.values(), (world) => world.ended));
  }

  /** How much was written in a world after one round, up to another. */
  countWritten(world: string, after: number, until: number): number {
    let count = 0;
    for (const [round, written] of this.worlds.get(world)?.written ?? []) {
      if (round > after && round <= until) count += written;
    }
    return count;
  }

  /** Forget rounds that are shown already. */
  forget(world: string, until: number): void {
    const written = this.worlds.get(world)?.written;
    for (const round of written?.keys() ?? []) if (round <= until) written?.delete(round);
  }

  private of(name: string): WorldTally {
    let world = this.worlds.get(name);
    if (!world) this.worlds.set(name, (world = { ended: -1, written: new Map() }));
    return world;
  }
}

/** What a reaction changes about the post it is to. */
const REACTIONS: Record<string, [keyof Pick<Post, "likes" | "dislikes" | "shares" | "comments">, number]> = {
  LIKE_POST: ["likes", 1],
  UNLIKE_POST: ["likes", -1],
  DISLIKE_POST: ["dislikes", 1],
  UNDO_DISLIKE_POST: ["dislikes", -1],
  REPOST: ["shares", 1],
  QUOTE_POST: ["shares", 1],
  CREATE_COMMENT: ["comments", 1],
};

/** The posts with the reactions since they were loaded. The same array where none is to one of them. */
export function addReactions(
  posts: readonly Post[],
  events: readonly StreamEvent[],
  world: string,
  after: number,
): readonly Post[] {
  const changed = new Map<number, Post>();
  const byId = new Map(posts.map((post) => [post.post_id, post]));
  for (const event of events) {
    if (event.kind !== "action" || event.world !== world || event.round <= after || !event.success) continue;
    const reaction = REACTIONS[event.action];
    const id = Number(event.args["quoted_id"] ?? event.args["post_id"]);
    const post = changed.get(id) ?? byId.get(id);
    if (!reaction || !post) continue;
    const [name, step] = reaction;
    changed.set(id, { ...post, [name]: Math.max(0, post[name] + step) });
  }
  return changed.size === 0 ? posts : posts.map((post) => changed.get(post.post_id) ?? post);
}

export const NO_FIGURES: Figures = { rounds: [], activity: [], figures: {}, claims: {}, opinions: [] };

/** Figures with those of later rounds: what was known of a round before gives way to what is known now. */
export function mergeFigures(known: Figures, fresh: Figures): Figures {
  const first = fresh.rounds[0];
  if (first === undefined) return known;
  const keep = known.rounds.findIndex((round) => round >= first);
  const kept = keep === -1 ? known.rounds.length : keep;
  // A series that is new has no values for the rounds before it.
  const join = <T>(old: T[] | undefined, now: T[] | undefined, none: T): T[] => [
    ...Array.from({ length: kept }, (_, at) => old?.[at] ?? none),
    ...Array.from({ length: fresh.rounds.length }, (_, at) => now?.[at] ?? none),
  ];
  const names = <T extends object>(a: T, b: T): string[] => [...new Set([...Object.keys(a), ...Object.keys(b)])];
  const figures: Figures["figures"] = {};
  for (const name of names(known.figures, fresh.figures)) {
    const [old, now] = [known.figures[name] ?? {}, fresh.figures[name] ?? {}];
    figures[name] = Object.fromEntries(names(old, now).map((world) => [world, join(old[world], now[world], null)]));
  }
  const claims: Figures["claims"] = {};
  for (const id of names(known.claims, fresh.claims)) {
    const [old, now] = [known.claims[id], fresh.claims[id]];
    claims[id] = { reach: join(old?.reach, now?.reach, null), belief: join(old?.belief, now?.belief, null) };
  }
  return {
    rounds: join(known.rounds, fresh.rounds, 0),
    activity: join(known.activity, fresh.activity, 0),
    opinions: join(known.opinions, fresh.opinions, []),
    figures,
    claims,
  };
}
