/**
 * The source that is a folder of files: everything was asked once, by `shoal bundle`, and nothing can be changed.
 *
 * Files of data are scripts, because a page that is opened from a disk may load scripts, and nothing else.
 */

import { countUpTo, findEntry, findOpinion, findValue, type Entry, type ValuePast } from "./bundled.ts";
import type { ConversationsQuery, FeedQuery, Follower, PeopleQuery, RunsQuery, Source, TalkQuery } from "./source.ts";
import type {
  Comment,
  Conversation,
  Example,
  Figures,
  Page,
  PersonRow,
  Post,
  Problem,
  RunOverview,
  RunRow,
  Trend,
  Turn,
} from "./types.ts";

type Kind = "likes" | "dislikes" | "shares" | "comments";
type Query = Record<string, unknown>;

interface BundleIndex {
  runs: RunOverview[];
  experiment: string | null;
  left_out: string[];
}

interface BundledRun {
  header: RunOverview;
  figures: Figures;
  people: {
    people: PersonRow[];
    opinions: Record<string, ValuePast[]>;
    counts: Record<"actions" | "followers" | "influence", Record<string, ValuePast>>;
  };
}

interface BundledWorld {
  feed: {
    posts: Post[];
    reactions: Record<Kind, Record<string, number[]>>;
    comments: Record<string, Comment[]>;
  } | null;
  talk: Turn[];
}

const NOT_HERE = "This is not part of the bundle. Open the run itself with `shoal serve` to see it.";
const EVER = Number.MAX_SAFE_INTEGER;

const cleanName = (id: string): string => id.replace(/[^A-Za-z0-9_-]+/g, "-");

class Files {
  private readonly loads = new Map<string, Promise<unknown>>();
  private readonly contents = new Map<string, unknown>();

  constructor() {
    Object.assign(globalThis, {
      shoalBundle: { add: (name: string, content: unknown) => this.contents.set(name, content) },
    });
  }

  load<T>(name: string): Promise<T> {
    let found = this.loads.get(name);
    if (!found) this.loads.set(name, (found = this.read(name)));
    return found as Promise<T>;
  }

  private read(name: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = `data/${name}.js`;
      script.onload = () => (this.contents.has(name) ? resolve(this.contents.get(name)) : reject(new Error(NOT_HERE)));
      script.onerror = () => reject(new Error(NOT_HERE));
      document.head.append(script);
    });
  }
}

export class BundleSource implements Source {
  readonly isLive = false;
  private readonly files = new Files();

  private async index(): Promise<BundleIndex> {
    return this.files.load<BundleIndex>("index");
  }
  private run(id: string): Promise<BundledRun> {
    return this.files.load(`run-${cleanName(id)}`);
  }
  private world(id: string, world: string): Promise<BundledWorld> {
    return this.files.load(`world-${cleanName(id)}-${world}`);
  }

  async listRuns({ limit = EVER, offset = 0, archived = false }: RunsQuery = {}): Promise<Page<RunRow>> {
    const { runs, experiment } = await this.index();
    const only = runs[0];
    if (only && runs.length === 1 && !experiment && offset === 0) location.hash = `#/run/${only.simulation_id}`;
    return takePage(archived ? [] : runs, offset, limit);
  }
  async readRun(id: string): Promise<RunOverview> {
    return (await this.run(id)).header;
  }
  async readFigures(id: string): Promise<Figures> {
    return (await this.run(id)).figures;
  }

  async readFeed(id: string, query: FeedQuery): Promise<Page<Post>> {
    const { feed } = await this.world(id, query.world);
    if (!feed) return { items: [], total: 0, next: null };
    const { until = EVER, before, sort = "new", claim, agent, limit = 30 } = query;
    const asOf = (post: Post | null): Post | null => {
      if (!post) return null;
      const count = (kind: Kind): number => countUpTo(feed.reactions[kind][post.post_id], until);
      const counts = { likes: count("likes"), dislikes: count("dislikes"), shares: count("shares") };
      return { ...post, ...counts, comments: count("comments"), quoted: asOf(post.quoted), shared: asOf(post.shared) };
    };
    let posts = feed.posts.filter(
      (post) =>
        post.round <= until &&
        (claim === undefined || post.claim === claim) &&
        (agent === undefined || post.agent_id === agent),
    );
    if (sort === "new") {
      if (before) posts = posts.filter((post) => post.post_id < Number(before));
      const shown = posts.slice(0, limit);
      const next = posts.length > limit ? String(shown.at(-1)?.post_id) : null;
      return { items: shown.map((post) => asOf(post) as Post), total: null, next };
    }
    const kind: Kind = sort === "shared" ? "shares" : "likes";
    const ranked = posts.map((post) => asOf(post) as Post).filter((post) => post[kind] > 0);
    ranked.sort((one, other) => other[kind] - one[kind] || other.post_id - one.post_id);
    return takePage(ranked, Number(before ?? 0), limit);
  }
  async readThread(id: string, world: string, post: number, until = EVER): Promise<Page<Comment>> {
    const { feed } = await this.world(id, world);
    const comments = (feed?.comments[post] ?? []).filter((comment) => comment.round <= until);
    return { items: comments, total: comments.length, next: null };
  }
  async readTalk(id: string, query: TalkQuery): Promise<Page<Turn>> {
    const { world, until = EVER, before, conversation, limit = 50 } = query;
    let turns = (await this.world(id, world)).talk.filter((turn) => turn.round <= until);
    if (conversation !== undefined) {
      const { items } = await this.listConversations(id, { world });
      const people = new Set(items.find((one) => one.conversation === conversation)?.people.map((one) => one.agent_id));
      turns = turns.filter((turn) => turn.agent_id < 0 || people.has(turn.agent_id));
    }
    return takePage(turns, Number(before ?? 0), limit);
  }
  listConversations(id: string, query: ConversationsQuery): Promise<Page<Conversation>> {
    return this.ask("GET", `simulation/${id}/conversations`, { ...query });
  }
  readTrends(id: string, world: string, until?: number): Promise<Trend[]> {
    return this.ask("GET", `simulation/${id}/trends`, { world, until });
  }

  async listPeople(id: string, query: PeopleQuery): Promise<Page<PersonRow>> {
    const { people, opinions, counts } = (await this.run(id)).people;
    const { round = EVER, query: search = "", sort = "number", offset = 0, limit = 50 } = query;
    const words = search.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    const found = people
      .filter((person) => words.every((word) => person.name.toLocaleLowerCase().includes(word)))
      .map((person) => ({
        ...person,
        opinion: findOpinion(opinions[person.agent_id] ?? [], round),
        actions: findValue(counts.actions[person.agent_id], round) ?? 0,
        followers: findValue(counts.followers[person.agent_id], round) ?? 0,
        influence: findValue(counts.influence[person.agent_id], round) ?? 0,
      }));
    if (sort === "name") found.sort((one, other) => one.name.localeCompare(other.name));
    else if (sort === "opinion") found.sort((one, other) => (other.opinion ?? -2) - (one.opinion ?? -2));
    else if (sort === "actions" || sort === "followers" || sort === "influence")
      found.sort((one, other) => other[sort] - one[sort]);
    return takePage(found, offset, limit);
  }

  follow(_id: string, _since: number, follower: Follower): () => void {
    follower.onconnection?.(true);
    return () => undefined;
  }

  async ask<T>(method: "GET" | "POST", route: string, values: Query = {}): Promise<T> {
    if (method !== "GET") throw new Error(NOT_HERE);
    const entries = await this.files.load<Entry[]>(await this.findFile(route, values));
    const found = findEntry(entries, route, values);
    if (found === undefined) throw new Error(NOT_HERE);
    return found as T;
  }

  private async findFile(route: string, values: Query): Promise<string> {
    const [, id, rest = ""] = /^simulation\/([^/]+)\/(.*)$/.exec(route) ?? [];
    if (!id) return "experiments";
    const name = cleanName(id);
    const agent = /^(?:agent|network)\/(\d+)/.exec(rest)?.[1] ?? (rest === "explain" ? values["agent"] : undefined);
    if (agent !== undefined) return `agent-${name}-${agent}`;
    const world = values["world"] ?? (await this.readRun(decodeURIComponent(id))).worlds[0]?.name;
    return `answers-${name}-${world}`;
  }

  addressOf(route: string): string {
    return /^experiments\/.*\/download\/report$/.test(route) ? "report.html" : `data/${route}`;
  }

  async listExamples(): Promise<Example[]> {
    return [];
  }
  async check(): Promise<Problem[]> {
    return [];
  }
  create(): Promise<string> {
    return Promise.reject(new Error(NOT_HERE));
  }
  fork(): Promise<string> {
    return Promise.reject(new Error(NOT_HERE));
  }
  start(): Promise<void> {
    return Promise.reject(new Error(NOT_HERE));
  }
  stop(): Promise<void> {
    return Promise.reject(new Error(NOT_HERE));
  }
  pause(): Promise<void> {
    return Promise.reject(new Error(NOT_HERE));
  }
  unpause(): Promise<void> {
    return Promise.reject(new Error(NOT_HERE));
  }
  inject(): Promise<void> {
    return Promise.reject(new Error(NOT_HERE));
  }
  archive(): Promise<void> {
    return Promise.reject(new Error(NOT_HERE));
  }
}

function takePage<T>(items: T[], offset: number, limit: number): Page<T> {
  const next = offset + limit < items.length ? String(offset + limit) : null;
  return { items: items.slice(offset, offset + limit), total: items.length, next };
}
