/** A seat as its page shows it: who is in it, what waits, and how the run is that it belongs to. */

import { source } from "../../api/index.ts";
import type { RunOverview, StreamEvent } from "../../api/types.ts";
import { AnswerError } from "../../api/errors.ts";
import { readAgent, type AgentBiography } from "../agent/agent.ts";
import { isAlive } from "../../text/state.ts";
import { nameTurn, type AnswerProblem, type SeatStatus, type SeatView, type TurnForm } from "./answers.ts";
import { answerTurn, giveBack, listSeats, takeSeat } from "./requests.ts";

/** What the agent did lately, newest first. */
export type Deed = Extract<StreamEvent, { kind: "action" }>;

const DEEDS_KEPT = 12;
const CONFLICT = 409;
/** The stream says when something changes. This is for what it cannot say, such as a browser that leaves. */
const LOOK_MS = 5_000;

export class SeatRoom {
  run = $state.raw<RunOverview | null>(null);
  person = $state.raw<AgentBiography | null>(null);
  seat = $state.raw<SeatView | null>(null);
  /** Whether it is known if the seat is taken. */
  isKnown = $state(false);
  error = $state.raw<unknown>(null);
  deeds = $state.raw<Deed[]>([]);
  /** When the turns that wait were read, on the clock of this page. */
  readAt = $state(0);
  /** Is called with a turn whose time was over before it was answered. */
  onmissed: (turn: TurnForm) => void = () => undefined;
  private answered = new Set<string>();
  private told = "";
  private end: (() => void) | null = null;
  private looking: ReturnType<typeof setInterval> | undefined;

  constructor(
    readonly id: string,
    readonly agent: number,
  ) {}

  readonly name = $derived.by(() => this.person?.name ?? `Person ${this.agent}`);
  readonly turns = $derived<TurnForm[]>(this.seat?.turns ?? []);
  readonly isMine = $derived(this.seat?.is_mine ?? false);
  readonly isForeign = $derived(this.seat !== null && this.seat.is_held && !this.seat.is_mine);

  open(): () => void {
    void this.load();
    this.looking = setInterval(() => {
      if (!document.hidden && this.seat) void this.look();
    }, LOOK_MS);
    return () => {
      this.end?.();
      clearInterval(this.looking);
    };
  }

  async load(): Promise<void> {
    try {
      const [run, person] = await Promise.all([source.readRun(this.id), readAgent(this.id, this.agent, undefined)]);
      this.run = run;
      this.person = person;
      await this.look();
      this.end ??= source.follow(this.id, Math.max(run.last_round - 1, 0), {
        onevents: (events) => this.receive(events),
      });
      this.error = null;
    } catch (problem) {
      this.error = problem;
    }
  }

  /** Ask who is in the seat and what waits. A seat that is taken and that no browser holds is held from now on. */
  async look(): Promise<void> {
    const found = (await listSeats(this.id)).find((one) => one.agent_id === this.agent) ?? null;
    this.show(found);
    if (found && !found.is_held && this.run?.status === "running") await this.sitDown(found.seconds, found.otherwise);
  }

  /** Take the seat; `isForced`: also from another browser. */
  async sitDown(seconds: number, otherwise: string, isForced = false): Promise<void> {
    try {
      this.show(await takeSeat(this.id, this.agent, { seconds, otherwise, force: isForced }));
    } catch (problem) {
      // Somebody was faster, or the run has just ended: what is so now is shown.
      if (!(problem instanceof AnswerError && problem.status === CONFLICT)) throw problem;
      this.show((await listSeats(this.id)).find((one) => one.agent_id === this.agent) ?? null);
    }
  }

  async leave(): Promise<void> {
    await giveBack(this.id, this.agent);
    this.show(null);
  }

  /** Answer a turn, and return what is wrong with the answer; nothing, where it counts. */
  async answer(turn: TurnForm, actions: Record<string, unknown>[]): Promise<AnswerProblem[]> {
    const name = nameTurn(turn);
    // The stream may tell that the turn is over before the answer to the request is here.
    this.answered.add(name);
    try {
      const { is_accepted, problems } = await answerTurn(this.id, this.agent, turn, actions);
      if (!is_accepted) this.answered.delete(name);
      else await this.look();
      return problems;
    } catch (problem) {
      this.answered.delete(name);
      await this.look();
      throw problem;
    }
  }

  private show(seat: SeatView | null): void {
    const waits = new Set((seat?.turns ?? []).map(nameTurn));
    const isStill = seat !== null && seat.is_mine && this.isMine && this.run !== null && isAlive(this.run.status);
    const missed = isStill
      ? this.turns.filter((turn) => !waits.has(nameTurn(turn)) && !this.answered.has(nameTurn(turn)))
      : [];
    this.seat = seat;
    this.isKnown = true;
    this.readAt = performance.now();
    missed.forEach(this.onmissed);
  }

  private receive(events: StreamEvent[]): void {
    const mine = events.filter((event): event is Deed => event.kind === "action" && event.agent_id === this.agent);
    if (mine.length > 0) this.deeds = [...mine.reverse(), ...this.deeds].slice(0, DEEDS_KEPT);
    for (const event of events) if (event.kind === "state") this.readState(event.state);
  }

  private readState(state: Record<string, unknown>): void {
    const status = String(state["runner_status"] ?? "");
    const round = Number(state["current_round"] ?? 0);
    const isOther = status !== this.run?.status;
    if (this.run && (isOther || round !== this.run.last_round))
      this.run = { ...this.run, status, round, last_round: round };
    const seats = (state["seats"] ?? []) as SeatStatus[];
    const told = JSON.stringify([status, seats.find((seat) => seat.agent === this.agent) ?? null]);
    if (told === this.told) return;
    this.told = told;
    void (isOther ? this.load() : this.look().catch(() => undefined));
  }
}
