/** Calls again and again while the page is seen, each time after the last call has ended. Returns what ends it. */
export function poll(call: () => Promise<unknown>, everyMs: number): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;

  async function round(): Promise<void> {
    // A call that fails says so itself; the next one may go well.
    if (!document.hidden) await call().catch(() => undefined);
    if (!isOver) timer = setTimeout(() => void round(), everyMs);
  }

  timer = setTimeout(() => void round(), everyMs);
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}
