/** Plays a run from round to round, as a film of what has been. */

import type { RunView } from "./run.svelte.ts";

const STEP_MS = 420;
/** A long run is not watched round by round. */
const MOST_STEPS = 120;

export class Player {
  isPlaying = $state(false);
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(private readonly view: RunView) {}

  toggle(): void {
    if (this.isPlaying) this.stop();
    else this.start();
  }

  stop(): void {
    clearInterval(this.timer);
    this.isPlaying = false;
  }

  private start(): void {
    const { view } = this;
    // From the end there is nothing to see but the beginning.
    if (view.round >= view.last) view.choose(0);
    this.isPlaying = true;
    this.timer = setInterval(() => this.step(), STEP_MS);
  }

  private step(): void {
    const { view } = this;
    const next = view.round + Math.max(1, Math.round(view.last / MOST_STEPS));
    if (next < view.last) {
      view.choose(next);
    } else {
      view.follow();
      this.stop();
    }
  }
}
