/** The network of one world: what stays the same is asked for once, and the state of each round as the page moves. */

import { source } from "../../api/index.ts";
import type { components } from "../../api/schema.d.ts";

type Schemas = components["schemas"];
export type NetworkPicture = Schemas["NetworkPicture"];
export type NetworkPeople = Schemas["NetworkPeople"];
export type NetworkTies = Schemas["NetworkTies"];
export type NetworkState = Schemas["NetworkState"];
export type NetworkPerson = Schemas["NetworkPerson"];
export type NetworkSubject = Schemas["NetworkSubject"];

export interface NetworkQuery {
  world: string | undefined;
  round: number | undefined;
  claim: string | undefined;
}

/** So many states of rounds are kept, for whoever drags the timeline to and fro. */
const MOST_STATES = 60;
/** A long run is counted in parts, and shown meanwhile. */
const NEXT_PART_MS = 150;

/** Whether influence and paths are known up to the round that is shown. */
export function isCounted(picture: NetworkPicture): boolean {
  return picture.counted_until >= picture.round;
}

export class Network {
  picture = $state.raw<NetworkPicture | null>(null);
  people = $state.raw<NetworkPeople | null>(null);
  ties = $state.raw<NetworkTies | null>(null);
  error = $state.raw<unknown>(null);
  isLoading = $state(false);

  private kept = new Map<string, NetworkPicture>();
  private asked = 0;
  private isAsking = false;
  private wanted: NetworkQuery | null = null;
  private world = "";
  private isWatched = false;
  private nextPart: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly id: string) {}

  /** Show a round. While one answer is on its way, only the newest wish waits: dragging asks for no more than it can show. */
  async show(query: NetworkQuery): Promise<void> {
    clearTimeout(this.nextPart);
    this.isWatched = true;
    this.wanted = query;
    if (this.isAsking) return;
    this.isAsking = true;
    let last = query;
    while (this.wanted) {
      last = this.wanted;
      this.wanted = null;
      await this.load(last);
    }
    this.isAsking = false;
    if (this.isWatched && this.picture && !isCounted(this.picture) && !this.error) {
      this.nextPart = setTimeout(() => void this.show(last), NEXT_PART_MS);
    }
  }

  /** Nobody looks any more. */
  leave(): void {
    this.isWatched = false;
    clearTimeout(this.nextPart);
  }

  private async load(query: NetworkQuery): Promise<void> {
    const mine = ++this.asked;
    const isKnown = this.people !== null && (query.world === undefined || query.world === this.world);
    const key = [this.world, query.round, query.claim].join("|");
    const known = isKnown ? this.kept.get(key) : undefined;
    if (known) {
      this.picture = known;
      return;
    }
    this.isLoading = !isKnown;
    try {
      const found = await this.ask(query, isKnown);
      // Ties that came since belong to the picture of the whole.
      const isGrown = isKnown && found.ties_total !== this.picture?.ties_total;
      const picture = isGrown ? await this.ask(query, false) : found;
      if (mine !== this.asked) return;
      this.take(picture);
      if (query.round !== undefined && query.round <= picture.last_round && isCounted(picture)) this.keep(key, picture);
      this.error = null;
    } catch (error) {
      this.error = error;
    } finally {
      this.isLoading = false;
    }
  }

  private ask(query: NetworkQuery, isStateOnly: boolean): Promise<NetworkPicture> {
    return source.ask("GET", `simulation/${this.id}/network`, {
      ...query,
      in_parts: true,
      ...(isStateOnly ? { only_state: true } : {}),
    });
  }

  private take(picture: NetworkPicture): void {
    if (picture.people && picture.ties) {
      this.people = picture.people;
      this.ties = picture.ties;
      this.world = picture.world;
      this.kept.clear();
    }
    this.picture = picture;
  }

  private keep(key: string, picture: NetworkPicture): void {
    this.kept.set(key, picture);
    const oldest = this.kept.keys().next().value;
    if (this.kept.size > MOST_STATES && oldest !== undefined) this.kept.delete(oldest);
  }
}

export function readPerson(id: string, agent: number, query: NetworkQuery): Promise<NetworkPerson> {
  return source.ask("GET", `simulation/${id}/network/${agent}`, { ...query });
}
