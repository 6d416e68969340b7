/** A list that is loaded page by page. What it shows stays until what it is replaced by has come. */

import type { Page } from "../../api/types.ts";

/** Asks for the page after a cursor; `null` stands for the first. */
export type AskPage<T> = (cursor: string | null, offset: number) => Promise<Page<T>>;

export class PagedList<T> {
  items = $state.raw<readonly T[]>([]);
  total = $state<number | null>(null);
  isLoaded = $state(false);
  isLoading = $state(false);
  hasMore = $state(false);
  error = $state.raw<unknown>(null);
  private cursor: string | null = null;
  private ask: AskPage<T> | null = null;
  /** Answers to questions that are no longer asked are dropped. */
  private turn = 0;

  async load(ask: AskPage<T>): Promise<void> {
    this.ask = ask;
    await this.read(null);
  }

  async retry(): Promise<void> {
    await this.read(null);
  }

  async more(): Promise<void> {
    if (this.hasMore && !this.isLoading) await this.read(this.cursor);
  }

  private async read(cursor: string | null): Promise<void> {
    if (!this.ask) return;
    const turn = ++this.turn;
    this.isLoading = true;
    try {
      const page = await this.ask(cursor, cursor === null ? 0 : this.items.length);
      if (turn !== this.turn) return;
      this.items = cursor === null ? page.items : [...this.items, ...page.items];
      this.cursor = page.next;
      this.hasMore = page.next !== null;
      if (page.total !== null || cursor === null) this.total = page.total;
      this.isLoaded = true;
      this.error = null;
    } catch (error) {
      if (turn !== this.turn) return;
      this.error = error;
      this.hasMore = false;
    } finally {
      if (turn === this.turn) this.isLoading = false;
    }
  }
}
