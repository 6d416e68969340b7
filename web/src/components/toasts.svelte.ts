/** Short messages about what was just done. */

import { describeError } from "../api/errors.ts";

export interface Toast {
  id: number;
  text: string;
  tone: "good" | "bad";
  action?: { text: string; href: string };
}

const STAY_MS = 6_000;

class ToastList {
  items = $state<Toast[]>([]);
  private next = 1;

  say(text: string, action?: Toast["action"]): void {
    this.add({ text, tone: "good", ...(action ? { action } : {}) });
  }

  fail(what: string, error: unknown): void {
    this.add({ text: `${what}: ${describeError(error)}`, tone: "bad" });
  }

  remove(id: number): void {
    this.items = this.items.filter((toast) => toast.id !== id);
  }

  private add(toast: Omit<Toast, "id">): void {
    const id = this.next++;
    this.items = [...this.items.slice(-2), { ...toast, id }];
    setTimeout(() => this.remove(id), toast.tone === "bad" ? STAY_MS * 2 : STAY_MS);
  }
}

export const toasts = new ToastList();
