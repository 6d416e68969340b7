/** All runs of the server: loaded page by page, and those that go on are asked for again. */

import { source } from "../../api/index.ts";
import type { RunRow } from "../../api/types.ts";
import { isAlive } from "../../text/state.ts";

const PAGE = 200;
/** More than this many runs are found by search in the terminal: `shoal list`. */
const MOST_RUNS = 5_000;

export class RunList {
  rows = $state.raw<RunRow[]>([]);
  isLoaded = $state(false);
  error = $state.raw<unknown>(null);

  constructor(private readonly archived: boolean) {}

  async load(): Promise<void> {
    try {
      const rows: RunRow[] = [];
      for (let offset = 0; offset < MOST_RUNS; offset += PAGE) {
        const page = await source.listRuns({ limit: PAGE, offset, archived: this.archived });
        rows.push(...page.items);
        // The first rows are shown while the rest is on its way.
        if (!this.isLoaded) this.rows = [...rows];
        this.isLoaded = this.isLoaded || rows.length > 0;
        if (page.items.length < PAGE) break;
      }
      this.rows = rows;
      this.isLoaded = true;
      this.error = null;
    } catch (error) {
      this.error = error;
    }
  }

  /** Ask again for the newest runs, and for the pages with a run that goes on. */
  async refresh(): Promise<void> {
    const offsets = new Set([0]);
    for (const [at, row] of this.rows.entries()) if (isAlive(row.status)) offsets.add(Math.floor(at / PAGE) * PAGE);
    const fresh = new Map<string, RunRow>();
    try {
      for (const offset of offsets) {
        const page = await source.listRuns({ limit: PAGE, offset, archived: this.archived });
        for (const row of page.items) fresh.set(row.simulation_id, row);
      }
    } catch (error) {
      this.error = error;
      return;
    }
    const known = new Set(this.rows.map((row) => row.simulation_id));
    const added = [...fresh.values()].filter((row) => !known.has(row.simulation_id));
    this.rows = [...added, ...this.rows.map((row) => fresh.get(row.simulation_id) ?? row)];
    this.error = null;
  }

  remove(id: string): void {
    this.rows = this.rows.filter((row) => row.simulation_id !== id);
  }
}

/** Whether every word of a search is in what a row says. */
export function matches(row: RunRow, search: string): boolean {
  const words = search.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return true;
  const text = [row.simulation_id, row.name, row.topic, row.status, ...row.worlds.map((world) => world.name)]
    .join(" ")
    .toLocaleLowerCase();
  return words.every((word) => text.includes(word));
}
