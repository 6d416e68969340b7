/** What an experiment may use, as typed and as sent. */

export interface LimitDraft {
  max_cost: string;
  max_calls: string;
  max_hours: string;
  parallel: string;
  max_simulations: string;
}

export const LIMITS: { name: keyof LimitDraft; label: string; hint: string; step: string }[] = [
  { name: "max_cost", label: "Dollars, at most", hint: "Of all runs together.", step: "any" },
  { name: "max_calls", label: "Calls, at most", hint: "To language models.", step: "1" },
  { name: "max_hours", label: "Hours, at most", hint: "Of work, all sessions together.", step: "any" },
  { name: "parallel", label: "Agents at once", hint: "Everywhere, over all runs.", step: "1" },
  { name: "max_simulations", label: "Runs side by side", hint: "Empty: what suits this machine.", step: "1" },
];

export function startLimits(): LimitDraft {
  return { max_cost: "", max_calls: "", max_hours: "", parallel: "", max_simulations: "" };
}

/** Only what was given. */
export function readLimits(draft: LimitDraft): Record<string, number> {
  const given = Object.entries(draft).filter(([, text]) => String(text).trim() !== "");
  return Object.fromEntries(given.map(([name, text]) => [name, Number(text)]));
}
