/** A run as its page shows it: what is known of it, which round is looked at, and whom it is about. */

import { source } from "../../api/index.ts";
import type { Figures, PersonRow, RunOverview, StreamEvent } from "../../api/types.ts";
import type { SeatStatus } from "../seat/answers.ts";
import { isAlive } from "../../text/state.ts";
import { LiveTally, NO_FIGURES, mergeFigures } from "./live.ts";
import { clampRound, timeOfRound } from "./timeline/rounds.ts";

/** Figures and the header are asked for again at most this often, however fast a run is. */
const REFRESH_MS = 1_000;
/** Calls in flight, money and limits change without an event. */
const HEARTBEAT_MS = 3_000;
/** How many rounds the charts show: more points than this lie on one another. */
const CHART_POINTS = Math.max(200, Math.ceil(innerWidth / 4));

export type Person = Pick<PersonRow, "agent_id" | "name">;

export class RunView {
  overview = $state.raw<RunOverview | null>(null);
  figures = $state.raw<Figures>(NO_FIGURES);
  hasFigures = $state(false);
  error = $state.raw<unknown>(null);
  isConnected = $state(true);
  /** What it waits for, as the worker said last. */
  waiting = $state<string | null>(null);
  /** The seats that people have taken, as the worker said last. */
  seats = $state.raw<SeatStatus[]>([]);

  /** The round that a person chose; null follows the newest. */
  chosen = $state<number | null>(null);
  person = $state.raw<Person | null>(null);
  claim = $state("");
  world = $state("");

  /** The last round that all worlds have ended. */
  last = $state(0);
  readonly round = $derived(this.chosen === null ? this.last : clampRound(this.chosen, this.last));
  readonly isLive = $derived(this.chosen === null);
  /** Changes when what is counted of the shown round may have: with a choice at once, live not at every round. */
  readonly glance = $derived<unknown>(this.chosen === null ? this.figures : this.chosen);
  readonly rounds = $derived(Math.max(this.overview?.rounds ?? 0, this.last));
  readonly isAlive = $derived(this.overview !== null && isAlive(this.overview.status));

  readonly tally = new LiveTally();
  /** Grows with every batch of events, for what is counted from the tally. */
  batch = $state(0);
  private listeners = new Set<(events: StreamEvent[]) => void>();
  /** The last round that all worlds had ended when figures were read. */
  private measured = 0;
  private end: (() => void) | null = null;
  private refreshing: ReturnType<typeof setTimeout> | undefined;
  private beating: ReturnType<typeof setInterval> | undefined;

  constructor(readonly id: string) {}

  timeOf(round: number): string | null {
    return this.overview ? timeOfRound(this.overview.start, this.overview.round_minutes, round) : null;
  }

  choose(round: number): void {
    this.chosen = clampRound(round, this.last);
  }

  /** Follow the newest round again. */
  follow(): void {
    this.chosen = null;
  }

  select(person: Person | null): void {
    this.person = person && { agent_id: person.agent_id, name: person.name };
  }

  /** People are numbered without gaps, so the number is the place in the list. */
  async readPerson(agent: number): Promise<PersonRow | null> {
    const page = await source.listPeople(this.id, { sort: "number", offset: agent, limit: 1, round: this.round });
    return page.items.find((person) => person.agent_id === agent) ?? null;
  }

  /** Select a person of whom only the number is known. */
  async findPerson(agent: number): Promise<void> {
    const found = await this.readPerson(agent).catch(() => null);
    if (found) this.select(found);
  }

  listen(listener: (events: StreamEvent[]) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Load the run and follow it. Returns what ends it. */
  open(): () => void {
    void this.load();
    this.beating = setInterval(() => {
      if (this.isAlive && !document.hidden) this.refreshSoon();
    }, HEARTBEAT_MS);
    return () => {
      this.end?.();
      clearTimeout(this.refreshing);
      clearInterval(this.beating);
    };
  }

  async load(): Promise<void> {
    this.error = null;
    try {
      this.take(await source.readRun(this.id));
      this.world ||= this.overview?.worlds[0]?.name ?? "";
      this.end ??= source.follow(this.id, this.last + 1, {
        onevents: (events) => this.receive(events),
        onconnection: (isConnected) => (this.isConnected = isConnected),
      });
      this.measured = this.last;
      this.figures = await source.readFigures(this.id, { points: CHART_POINTS });
      this.hasFigures = true;
    } catch (error) {
      this.error = error;
    }
  }

  /** Ask for the header and for the figures since those that are known. */
  async refresh(): Promise<void> {
    try {
      this.take(await source.readRun(this.id));
      // What all worlds had ended when figures were read is known; of later rounds a slower world had none yet.
      // A run that has grown long is read anew, with rounds left out.
      const isLong = this.figures.rounds.length > 2 * CHART_POINTS;
      const since = isLong ? undefined : this.figures.rounds.findLast((round) => round < this.measured);
      this.measured = this.last;
      const fresh = await source.readFigures(this.id, { since, points: CHART_POINTS });
      this.figures = since === undefined ? fresh : mergeFigures(this.figures, fresh);
      this.hasFigures = true;
      this.error = null;
    } catch (error) {
      // The stream says that the server is away; what is known stays on the page.
      if (!this.overview) this.error = error;
    }
  }

  private take(overview: RunOverview): void {
    this.overview = overview;
    this.last = Math.max(this.last, overview.last_round, 0);
  }

  private receive(events: StreamEvent[]): void {
    const restarted = events.some((event) => event.kind === "restarted");
    const isNewRound = this.tally.add(events);
    if (restarted) this.startOver();
    this.last = Math.max(this.last, this.tally.lastRound());
    for (const event of events) if (event.kind === "state") this.readState(event.state);
    for (const listener of this.listeners) listener(events);
    this.batch++;
    if (isNewRound || restarted) this.refreshSoon();
  }

  private readState(state: Record<string, unknown>): void {
    const waiting = state["waiting"];
    this.waiting = typeof waiting === "string" && waiting ? waiting : null;
    this.seats = (state["seats"] ?? []) as SeatStatus[];
    const status = state["runner_status"];
    if (this.overview && typeof status === "string" && status !== this.overview.status) {
      this.overview = { ...this.overview, status };
      this.refreshSoon();
    }
  }

  private startOver(): void {
    this.last = 0;
    this.chosen = null;
    this.measured = 0;
    this.figures = NO_FIGURES;
  }

  private refreshSoon(): void {
    this.refreshing ??= setTimeout(() => {
      void this.refresh().finally(() => (this.refreshing = undefined));
    }, REFRESH_MS);
  }
}
