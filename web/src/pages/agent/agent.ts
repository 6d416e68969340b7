/** What the page of a person asks for, and how actions are told. */

import { source } from "../../api/index.ts";
import type { components } from "../../api/schema.d.ts";

type Schemas = components["schemas"];
export type AgentBiography = Schemas["AgentBiography"];
export type AgentMemory = Schemas["AgentMemory"];
export type TurnView = Schemas["TurnView"];
export type SightRow = Schemas["SightRow"];
export type ChosenPeople = Schemas["ChosenPeople"];
export type ActionInfo = Schemas["ActionInfo"];
export type ActionsAnswer = Schemas["ActionsAnswer"];
export type SurveyStatus = Schemas["SurveyStatus"];

export function readAgent(run: string, agent: number, round: number | undefined): Promise<AgentBiography> {
  return source.ask("GET", `simulation/${run}/agent/${agent}`, { round });
}

export function readMemory(run: string, agent: number, round: number, about: string): Promise<AgentMemory> {
  return source.ask("GET", `simulation/${run}/agent/${agent}/memory`, { round, about });
}

export function explainTurn(run: string, agent: number, round: number, world: string): Promise<TurnView[]> {
  return source.ask("GET", `simulation/${run}/explain`, { agent, round, world });
}

export function readActions(run: string, agent: number, cursor: string | null): Promise<ActionsAnswer> {
  return source.ask("GET", `simulation/${run}/actions`, { agent_id: agent, limit: 200, cursor });
}
