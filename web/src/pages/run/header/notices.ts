/** What has to be said about the state of a run before anything else on its page. */

import type { RunOverview } from "../../../api/types.ts";
import { hasFailed } from "../../../text/state.ts";

export interface Notice {
  tone: "bad" | "warn";
  title: string;
  text: string;
  /** A command for the terminal that does the same as the button above. */
  command: string | null;
}

/** Null where nothing has to be said. */
export function describeNotice(run: RunOverview, waiting: string | null): Notice | null {
  if (hasFailed(run.status)) {
    return {
      tone: "bad",
      title: run.status === "interrupted" ? "The run was interrupted" : "The run failed",
      text: [run.error, run.hint].filter(Boolean).join(" "),
      command: run.resumable ? `shoal resume ${run.simulation_id}` : null,
    };
  }
  if (run.status === "paused") {
    const text = waiting ?? run.error ?? "It goes on when somebody lets it.";
    return { tone: "warn", title: "The run is paused", text, command: null };
  }
  if (waiting && run.status === "running") {
    return { tone: "warn", title: "The run waits", text: waiting, command: null };
  }
  return null;
}
