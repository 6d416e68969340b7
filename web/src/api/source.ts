/** Where the pages get what they show. Components know nothing else: no address, no request. */

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
  StreamEvent,
  Trend,
  Turn,
} from "./types.ts";

export interface FiguresQuery {
  since?: number;
  /** How many rounds at most: of a longer run some are left out, the last is not. */
  points?: number;
}

export interface FeedQuery {
  world: string;
  /** As the world was after this round. */
  until?: number;
  before?: string;
  sort?: "new" | "shared" | "liked";
  claim?: string;
  agent?: number;
  limit?: number;
}

export interface RunsQuery {
  limit?: number;
  offset?: number;
  archived?: boolean;
}

export interface TalkQuery {
  world: string;
  until?: number;
  before?: string;
  conversation?: number;
  limit?: number;
}

export interface ConversationsQuery {
  world: string;
  until?: number;
  agent?: number;
  offset?: number;
  limit?: number;
}

export interface PeopleQuery {
  /** Figures are those after this round. */
  round?: number;
  query?: string;
  sort?: string;
  offset?: number;
  limit?: number;
}

export interface ForkRequest {
  at: number;
  set?: Record<string, unknown>;
  events?: unknown[];
  /** Numbers of the people who are taken out. */
  without?: number[];
  name?: string;
}

export interface Follower {
  /** Events come in batches, so that thousands a second cost one redraw. */
  onevents: (events: StreamEvent[]) => void;
  onconnection?: (isConnected: boolean) => void;
}

export interface Source {
  /** False for a bundle: nothing can be started, asked or changed. */
  readonly isLive: boolean;

  listRuns(query?: RunsQuery): Promise<Page<RunRow>>;
  readRun(id: string): Promise<RunOverview>;
  readFigures(id: string, query?: FiguresQuery): Promise<Figures>;
  readFeed(id: string, query: FeedQuery): Promise<Page<Post>>;
  readThread(id: string, world: string, post: number, until?: number): Promise<Page<Comment>>;
  readTalk(id: string, query: TalkQuery): Promise<Page<Turn>>;
  listConversations(id: string, query: ConversationsQuery): Promise<Page<Conversation>>;
  readTrends(id: string, world: string, until?: number): Promise<Trend[]>;
  listPeople(id: string, query: PeopleQuery): Promise<Page<PersonRow>>;

  /** Follow a run from a round on, through lost connections and restarts of the server. Returns what ends it. */
  follow(id: string, since: number, follower: Follower): () => void;

  listExamples(): Promise<Example[]>;
  check(text: string): Promise<Problem[]>;
  create(
    body:
      | { text: string }
      | { scenario: unknown }
      | { config: unknown; reddit_profiles?: unknown; twitter_profiles?: string },
  ): Promise<string>;
  start(id: string): Promise<void>;
  stop(id: string): Promise<void>;
  pause(id: string): Promise<void>;
  unpause(id: string): Promise<void>;
  inject(id: string, event: unknown): Promise<void>;
  fork(id: string, request: ForkRequest): Promise<string>;
  archive(id: string): Promise<void>;

  /** Any other route, for pages that have their own: `ask("GET", "simulation/x/network", {round: 3})`. */
  ask<T>(method: "GET" | "POST", route: string, values?: Record<string, unknown>): Promise<T>;
  /** The address of something that a browser downloads. */
  addressOf(route: string): string;
}
