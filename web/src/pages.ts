/** Every page and its address. A page is loaded when it is opened, so the first load stays small. */

import type { Component } from "svelte";

// Each page declares its own props; what the address gives is checked where the page is defined.
type AnyPage = Component<any>;

export interface FoundPage {
  load: () => Promise<AnyPage>;
  props: Record<string, unknown>;
  /** A page is built anew when this changes; what else changes in the address only updates its props. */
  key: string;
}

interface PageEntry {
  /** `:name` stands for a part of the address, which becomes a prop. */
  path: string;
  load: () => Promise<{ default: AnyPage }>;
}

const PAGES: PageEntry[] = [
  { path: "", load: () => import("./pages/runs/RunsPage.svelte") },
  { path: "new", load: () => import("./pages/new/NewPage.svelte") },
  { path: "run/:id", load: () => import("./pages/run/RunPage.svelte") },
  { path: "run/:id/agent/:agent", load: () => import("./pages/agent/AgentPage.svelte") },
  { path: "run/:id/seat/:agent", load: () => import("./pages/seat/SeatPage.svelte") },
  { path: "run/:id/network", load: () => import("./pages/network/NetworkPage.svelte") },
  { path: "run/:id/survey", load: () => import("./pages/survey/SurveyPage.svelte") },
  { path: "run/:id/graph", load: () => import("./pages/graph/GraphPage.svelte") },
  { path: "compare/:a/:b", load: () => import("./pages/compare/ComparePage.svelte") },
  { path: "experiments", load: () => import("./pages/experiments/ExperimentsPage.svelte") },
  { path: "experiment/:name", load: () => import("./pages/experiments/ExperimentPage.svelte") },
];

function match(path: string, parts: string[]): Record<string, string> | null {
  const wanted = path.split("/").filter(Boolean);
  if (wanted.length !== parts.length) return null;
  const props: Record<string, string> = {};
  for (const [at, name] of wanted.entries()) {
    const part = parts[at] ?? "";
    if (name.startsWith(":")) props[name.slice(1)] = part;
    else if (name !== part) return null;
  }
  return props;
}

export function findPage(address: string): FoundPage | null {
  const parts = address.split("/").filter(Boolean).map(decodeURIComponent);
  for (const { path, load } of PAGES) {
    const props = match(path, parts);
    if (props) return { load: async () => (await load()).default, props, key: address };
  }
  return null;
}
