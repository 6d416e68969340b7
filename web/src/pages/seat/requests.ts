/** What the pages of a seat ask the server. */

import { source } from "../../api/index.ts";
import type { AnswerProblem, SeatView, TurnForm } from "./answers.ts";

const SECRET = "shoal-seat";

/** What tells this browser from others. It is kept, so that a page that is loaded again still holds its seats. */
export function readSecret(): string {
  let secret = localStorage.getItem(SECRET);
  if (!secret) {
    secret = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join(
      "",
    );
    localStorage.setItem(SECRET, secret);
  }
  return secret;
}

export function listSeats(run: string): Promise<SeatView[]> {
  return source.ask("GET", `simulation/${run}/seats`, { secret: readSecret() });
}

export function takeSeat(
  run: string,
  agent: number,
  terms: { seconds: number; otherwise: string; force?: boolean },
): Promise<SeatView> {
  const body = { simulation_id: run, agent_id: agent, secret: readSecret(), ...terms };
  return source.ask("POST", "simulation/seat/take", body);
}

export function giveBack(run: string, agent: number): Promise<void> {
  return source.ask("POST", "simulation/seat/give-back", {
    simulation_id: run,
    agent_id: agent,
    secret: readSecret(),
  });
}

export function answerTurn(
  run: string,
  agent: number,
  turn: TurnForm,
  actions: Record<string, unknown>[],
): Promise<{ is_accepted: boolean; problems: AnswerProblem[] }> {
  const { world, round } = turn;
  return source.ask("POST", "simulation/seat/answer", {
    simulation_id: run,
    agent_id: agent,
    secret: readSecret(),
    world,
    round,
    actions,
  });
}
