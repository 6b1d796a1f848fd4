import { copyOf } from "./layers";
import type { World } from "./world";

type MapName = {
  [Name in keyof World]: World[Name] extends ReadonlyMap<string, unknown> ? Name : never;
}[keyof World];
type Entry<Name extends MapName> = World[Name] extends ReadonlyMap<string, infer Value> ? Value : never;

/**
 * A world in the making. Its maps are copied when they are first written to, large ones in layers, so that a batch of
 * notifications costs what it touches, and the world it began with stays as it was.
 */
export class Draft {
  /** What was made here, and so can still be changed in place. */
  readonly #own = new Set<unknown>();
  readonly #maps = new Map<MapName, Map<string, unknown>>();
  deadTasks: number;
  deadMails: number;
  clockOffsetSeconds: number;
  seq: number;
  at: number;

  constructor(readonly before: World) {
    ({ seq: this.seq, at: this.at, deadTasks: this.deadTasks, deadMails: this.deadMails } = before);
    this.clockOffsetSeconds = before.clockOffsetSeconds;
  }

  all<Name extends MapName>(name: Name): World[Name] {
    return (this.#maps.get(name) ?? this.before[name]) as World[Name];
  }

  get<Name extends MapName>(name: Name, key: string): Entry<Name> | undefined {
    return (this.all(name) as ReadonlyMap<string, Entry<Name>>).get(key);
  }

  set<Name extends MapName>(name: Name, key: string, value: Entry<Name>): void {
    this.#own.add(value);
    this.#writable(name).set(key, value);
  }

  /** Change some fields of what is there; nothing happens if there is no such thing. */
  change<Name extends MapName>(name: Name, key: string, fields: Partial<Entry<Name>>): void {
    const found = this.get(name, key);
    if (found === undefined) return;
    if (this.#own.has(found)) Object.assign(found as object, fields);
    else this.set(name, key, { ...(found as object), ...fields } as Entry<Name>);
  }

  delete<Name extends MapName>(name: Name, key: string): void {
    if ((this.all(name) as ReadonlyMap<string, unknown>).has(key)) this.#writable(name).delete(key);
  }

  done(): World {
    const { seq, at, deadTasks, deadMails, clockOffsetSeconds } = this;
    return {
      ...this.before,
      ...Object.fromEntries(this.#maps),
      ...{ seq, at, deadTasks, deadMails, clockOffsetSeconds },
    };
  }

  #writable<Name extends MapName>(name: Name): Map<string, unknown> {
    let map = this.#maps.get(name);
    if (map === undefined) {
      map = copyOf(this.before[name] as ReadonlyMap<string, unknown>);
      this.#maps.set(name, map);
    }
    return map;
  }
}
