/** Which page the address names. Everything is behind the #, so the same files work from a server and from a folder. */

export type Query = Record<string, string>;

export interface Route {
  /** As it stands in the address, without parameters. */
  path: string;
  /** The path in parts: `#/run/ID/agent/3` is ["run", "ID", "agent", "3"]. */
  parts: string[];
  query: Query;
}

export function parseHash(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  return {
    path,
    parts: path.split("/").filter(Boolean).map(decodeURIComponent),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** The address of a page, for `href`. Parameters that are undefined or empty are left out. */
export function href(parts: (string | number)[], query: Record<string, string | number | undefined> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return "#/" + parts.map((part) => encodeURIComponent(part)).join("/") + (search ? `?${search}` : "");
}

class Router {
  route = $state.raw<Route>(parseHash(location.hash));
  /** Stays the same while only parameters change. */
  readonly path = $derived(this.route.path);

  constructor() {
    addEventListener("hashchange", () => (this.route = parseHash(location.hash)));
  }

  open(address: string): void {
    location.hash = address;
  }

  /** Change parameters of the present page. Nothing is added to the history, so Back leaves the page. */
  setQuery(changes: Record<string, string | number | undefined>): void {
    const address = href(this.route.parts, { ...this.route.query, ...changes });
    if (address === location.hash) return;
    history.replaceState(history.state, "", address);
    this.route = parseHash(address);
  }
}

export const router = new Router();
