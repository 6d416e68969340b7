/** A family of runs as a tree: each fork stands below the run that it branches off, at the round where it does. */

import type { RunRow } from "../../api/types.ts";

export interface LineageRow {
  run: RunRow;
  /** How far below the first run of the family. */
  depth: number;
  /** The row of its parent; the first run has none. */
  parent: number | null;
}

/** Runs in the order of a tree. Those whose parent is gone stand at the top. */
export function buildTree(runs: RunRow[]): LineageRow[] {
  const known = new Set(runs.map((run) => run.simulation_id));
  const forks = new Map<string, RunRow[]>();
  const roots: RunRow[] = [];
  for (const run of runs) {
    if (run.parent && known.has(run.parent.id) && run.parent.id !== run.simulation_id) {
      forks.set(run.parent.id, [...(forks.get(run.parent.id) ?? []), run]);
    } else roots.push(run);
  }
  const rows: LineageRow[] = [];
  function add(run: RunRow, depth: number, parent: number | null): void {
    rows.push({ run, depth, parent });
    const at = rows.length - 1;
    const below = forks.get(run.simulation_id) ?? [];
    forks.delete(run.simulation_id);
    for (const fork of below.toSorted((one, other) => (one.parent?.round ?? 0) - (other.parent?.round ?? 0))) {
      add(fork, depth + 1, at);
    }
  }
  for (const root of roots) add(root, 0, null);
  return rows;
}
