/** The source that is a server: every route in one line. */

import { session } from "../session.svelte.ts";
import { AnswerError, ServerUnreachable } from "./errors.ts";
import type {
  ConversationsQuery,
  FeedQuery,
  FiguresQuery,
  Follower,
  ForkRequest,
  PeopleQuery,
  RunsQuery,
  Source,
  TalkQuery,
} from "./source.ts";
import { followStream } from "./stream.ts";
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

const ROOT = "api/";

type Values = Record<string, unknown>;

function encodeQuery(values: Values): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== null && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return text ? `?${text}` : "";
}

export class HttpSource implements Source {
  readonly isLive = true;

  async ask<T>(method: "GET" | "POST", route: string, values: Values = {}): Promise<T> {
    const isGet = method === "GET";
    let response: Response;
    try {
      response = await fetch(ROOT + route + (isGet ? encodeQuery(values) : ""), {
        method,
        ...(isGet ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(values) }),
      });
    } catch {
      throw new ServerUnreachable();
    }
    const answer = (await response.json().catch(() => null)) as {
      success?: boolean;
      data?: T;
      error?: string;
      field?: string | null;
    } | null;
    if (response.status === 401) session.ask();
    if (!response.ok || !answer?.success) {
      throw new AnswerError(response.status, answer?.error ?? `The server answered ${response.status}.`, answer?.field);
    }
    return answer.data as T;
  }

  addressOf(route: string): string {
    return ROOT + route;
  }

  private get<T>(route: string, values?: Values): Promise<T> {
    return this.ask("GET", `simulation/${route}`, values);
  }

  private async post(route: string, values: Values): Promise<void> {
    await this.ask("POST", `simulation/${route}`, values);
  }

  listRuns(query: RunsQuery = {}): Promise<Page<RunRow>> {
    return this.get("overview", { ...query });
  }
  readRun(id: string): Promise<RunOverview> {
    return this.get(`${id}/overview`);
  }
  readFigures(id: string, query: FiguresQuery = {}): Promise<Figures> {
    return this.get(`${id}/figures`, { ...query });
  }
  readFeed(id: string, query: FeedQuery): Promise<Page<Post>> {
    return this.get(`${id}/feed`, { ...query });
  }
  readThread(id: string, world: string, post: number, until?: number): Promise<Page<Comment>> {
    return this.get(`${id}/thread`, { world, post_id: post, until });
  }
  readTalk(id: string, query: TalkQuery): Promise<Page<Turn>> {
    return this.get(`${id}/talk`, { ...query });
  }
  listConversations(id: string, query: ConversationsQuery): Promise<Page<Conversation>> {
    return this.get(`${id}/conversations`, { ...query });
  }

  readTrends(id: string, world: string, until?: number): Promise<Trend[]> {
    return this.get(`${id}/trends`, { world, until });
  }
  listPeople(id: string, query: PeopleQuery): Promise<Page<PersonRow>> {
    return this.get(`${id}/people`, { ...query });
  }

  follow(id: string, since: number, follower: Follower): () => void {
    return followStream(`${ROOT}simulation/${id}/events`, since, follower);
  }

  listExamples(): Promise<Example[]> {
    return this.get("examples");
  }
  check(text: string): Promise<Problem[]> {
    return this.ask("POST", "simulation/check", { text });
  }
  async create(body: Values): Promise<string> {
    return (await this.ask<{ simulation_id: string }>("POST", "simulation/create", body)).simulation_id;
  }
  start(id: string): Promise<void> {
    return this.post("start", { simulation_id: id });
  }
  stop(id: string): Promise<void> {
    return this.post("stop", { simulation_id: id });
  }
  pause(id: string): Promise<void> {
    return this.post("pause", { simulation_id: id });
  }
  unpause(id: string): Promise<void> {
    return this.post("continue", { simulation_id: id });
  }
  inject(id: string, event: unknown): Promise<void> {
    return this.post("inject", { simulation_id: id, event });
  }
  async fork(id: string, request: ForkRequest): Promise<string> {
    const answer = await this.ask<{ simulation_id: string }>("POST", "simulation/fork", {
      simulation_id: id,
      ...request,
    });
    return answer.simulation_id;
  }
  archive(id: string): Promise<void> {
    return this.post("archive", { simulation_id: id });
  }
}
