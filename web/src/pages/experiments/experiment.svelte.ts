/** One experiment as it goes on: how far it is, and its report and curves, asked for again as runs end. */

import { source } from "../../api/index.ts";
import type { Curves, Experiment, Report } from "./experiments.ts";

/** Curves open the runs of an experiment, so they are asked for less often. */
const CURVES_MS = 15_000;

export class LiveExperiment {
  experiment = $state.raw<Experiment | null>(null);
  report = $state.raw<Report | null>(null);
  curves = $state.raw<Curves[]>([]);
  error = $state.raw<unknown>(null);
  private reported = -1;
  private drawn = -1;
  private drawnAt = 0;

  constructor(readonly name: string) {}

  private ask<T>(route = ""): Promise<T> {
    return source.ask<T>("GET", `experiments/${encodeURIComponent(this.name)}${route}`);
  }

  async load(): Promise<void> {
    try {
      this.experiment = await this.ask<Experiment>();
      this.error = null;
      await this.follow(this.experiment);
    } catch (error) {
      this.error = error;
    }
  }

  async act(what: "stop" | "continue", values: Record<string, unknown> = {}): Promise<void> {
    this.experiment = await source.ask("POST", `experiments/${encodeURIComponent(this.name)}/${what}`, values);
    await this.load();
  }

  private async follow({ ended, status }: Experiment): Promise<void> {
    if (ended !== this.reported) {
      this.report = await this.ask<Report>("/report");
      this.reported = ended;
    }
    const isDue = status !== "running" || Date.now() - this.drawnAt > CURVES_MS;
    if (ended !== this.drawn && ended > 0 && isDue) {
      this.curves = await this.ask<Curves[]>("/curves");
      [this.drawn, this.drawnAt] = [ended, Date.now()];
    }
  }
}
