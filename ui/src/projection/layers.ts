/** Maps with fewer entries are copied: that is faster. */
const SMALL = 500;

/** A map to write to that begins as this one, which stays as it was: what few changes cost does not grow with it. */
export function copyOf<Value>(map: ReadonlyMap<string, Value>): Map<string, Value> {
  if (map instanceof Layers) return map.isWorn ? map.merged() : map.copy();
  return map.size < SMALL ? new Map(map) : new Layers(map);
}

/**
 * A large map with a few changes laid over it. It is used like any map, and its entries are in the same order; while
 * it is read by others it is not written to any more.
 */
export class Layers<Value> extends Map<string, Value> {
  readonly #base: ReadonlyMap<string, Value>;
  /** What is not to be seen of the base: those that were deleted, and then perhaps set again, which puts them last. */
  readonly #gone: Set<string>;
  readonly #over: Map<string, Value>;
  #added: number;

  constructor(base: ReadonlyMap<string, Value>, gone?: Set<string>, over?: Map<string, Value>, added = 0) {
    super();
    this.#base = base;
    this.#gone = new Set(gone);
    this.#over = new Map(over);
    this.#added = added;
  }

  override get size(): number {
    return this.#base.size - this.#gone.size + this.#added;
  }

  /** Whether so much was changed that it is time to begin with a new base. */
  get isWorn(): boolean {
    return (this.#over.size + this.#gone.size) * 16 > this.#base.size;
  }

  copy(): Layers<Value> {
    return new Layers(this.#base, this.#gone, this.#over, this.#added);
  }

  merged(): Map<string, Value> {
    const map = new Map(this.#base);
    for (const key of this.#gone) map.delete(key);
    for (const [key, value] of this.#over) map.set(key, value);
    return map;
  }

  override get(key: string): Value | undefined {
    if (this.#over.has(key)) return this.#over.get(key);
    return this.#gone.has(key) ? undefined : this.#base.get(key);
  }

  override has(key: string): boolean {
    return this.#over.has(key) || this.#isInBase(key);
  }

  override set(key: string, value: Value): this {
    if (!this.has(key)) this.#added += 1;
    this.#over.set(key, value);
    return this;
  }

  override delete(key: string): boolean {
    const isInBase = this.#isInBase(key);
    const isOver = this.#over.delete(key);
    if (isInBase) this.#gone.add(key);
    else if (isOver) this.#added -= 1;
    return isInBase || isOver;
  }

  override *entries(): MapIterator<[string, Value]> {
    for (const [key, value] of this.#base) {
      if (!this.#gone.has(key)) yield [key, this.#over.has(key) ? (this.#over.get(key) as Value) : value];
    }
    for (const entry of this.#over) if (!this.#isInBase(entry[0])) yield entry;
  }

  override *keys(): MapIterator<string> {
    for (const [key] of this.entries()) yield key;
  }

  override *values(): MapIterator<Value> {
    for (const [, value] of this.entries()) yield value;
  }

  override forEach(each: (value: Value, key: string, map: Map<string, Value>) => void): void {
    for (const [key, value] of this.entries()) each(value, key, this);
  }

  override [Symbol.iterator](): MapIterator<[string, Value]> {
    return this.entries();
  }

  #isInBase(key: string): boolean {
    return this.#base.has(key) && !this.#gone.has(key);
  }
}
