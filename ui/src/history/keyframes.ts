import type { Notification } from "../client/client";
import { reduce } from "../projection/reduce";
import { EMPTY, type World } from "../projection/world";
import { breather } from "./breath";
import { type LogPages, pageOf } from "./pages";

/** How far apart worlds are kept: what is between them is folded from the one before. */
const INTERVAL = 2_000;
/** How many notifications at least are folded before it is asked whether the page has to draw. */
const PIECE = 200;
/** Each piece copies what it changes: with so many entries in the world for each of its notifications, that is little. */
const ENTRIES_FOR_EACH = 40;
/** How many entries the maps of all kept worlds may have. */
const MOST_ENTRIES = 1_500_000;
const FEWEST = 8;

export interface Reading {
  readonly signal?: AbortSignal;
  /** Told how much is done, from 0 to 1. */
  readonly onProgress?: (part: number) => void;
  /** A world to begin with, if it is nearer than those that are kept. */
  readonly from?: World | undefined;
}

/**
 * The worlds of earlier moments. Some are kept, and share what did not change between them; any other is the one before
 * it and the notifications since. When they become too many or too large, every other is let go.
 */
export class Keyframes {
  readonly #pages: LogPages;
  readonly #mostEntries: number;
  /** In the order of their numbers; the first is always there: the empty one, or where a log that was pruned begins. */
  #kept: World[];
  #interval: number;

  constructor(pages: LogPages, { interval = INTERVAL, entries = MOST_ENTRIES, base = EMPTY } = {}) {
    this.#pages = pages;
    this.#kept = [base];
    this.#interval = interval;
    this.#mostEntries = entries;
  }

  get size(): number {
    return this.#kept.length;
  }

  /** The number of the earliest world that there is. */
  get first(): number {
    return this.#kept[0]?.seq ?? 0;
  }

  /** The last of the kept worlds that is not after this number, or the first. */
  nearest(seq: number): World {
    return this.#kept[this.#placeOf(seq)] ?? EMPTY;
  }

  /** Keep a world, unless one shortly before it is kept. */
  keep(world: World): void {
    const place = this.#placeOf(world.seq);
    if (world.seq - (this.#kept[place]?.seq ?? 0) < this.#interval) return;
    this.#kept.splice(place + 1, 0, world);
    const entries = this.#kept.reduce((sum, each) => sum + entriesOf(each), 0);
    if (entries <= this.#mostEntries || this.#kept.length <= FEWEST) return;
    this.#interval *= 2;
    this.#kept = this.#kept.filter((_, index) => index % 2 === 0);
  }

  /** The world right after this notification. */
  async worldAt(seq: number, { signal, onProgress, from }: Reading = {}): Promise<World> {
    const kept = this.nearest(seq);
    let world = from !== undefined && from.seq <= seq && from.seq > kept.seq ? from : kept;
    const begin = world.seq;
    const breathe = breather();
    while (world.seq < seq) {
      const number = pageOf(world.seq + 1);
      const notes = await this.#pages.page(number);
      signal?.throwIfAborted();
      if (pageOf(seq) > number) void this.#pages.page(number + 1).catch(() => {}); // whoever needs it is told
      for (const piece of pieces(notes, world, seq)) {
        world = reduce(world, piece);
        await breathe();
        signal?.throwIfAborted();
      }
      if (world.seq < seq && pageOf(world.seq + 1) === number) throw new Error(`The log ends at ${world.seq}.`);
      this.keep(world);
      onProgress?.((world.seq - begin) / (seq - begin));
    }
    return world;
  }

  /** Where the last one is that is not after this number. */
  #placeOf(seq: number): number {
    let [low, high] = [0, this.#kept.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.#kept[middle]?.seq ?? 0) <= seq) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

function* pieces(notes: readonly Notification[], world: World, last: number): Generator<readonly Notification[]> {
  const first = notes[0]?.seq ?? 0;
  const size = Math.max(PIECE, Math.round(entriesOf(world) / ENTRIES_FOR_EACH));
  const end = Math.min(notes.length, last - first + 1);
  for (let start = world.seq - first + 1; start < end; start += size) {
    yield notes.slice(start, Math.min(start + size, end));
  }
}

function entriesOf(world: World): number {
  let entries = 0;
  for (const part of Object.values(world)) if (part instanceof Map) entries += part.size;
  return entries;
}
