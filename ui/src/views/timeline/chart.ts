import type { TaskKind } from "../../client/client";

export type BarKind = "task" | "model" | "tool" | "wait" | "sleep" | "pause";

/** Something that an agent did, or that held it up, from one time to another. */
export interface Bar {
  readonly id: string;
  readonly kind: BarKind;
  readonly agentId: string;
  readonly taskId: string | null;
  /** The loop that it is a part of. */
  readonly parent: string | null;
  readonly label: string;
  readonly start: number;
  /** Null while it goes on. */
  readonly end: number | null;
  /** Whether it began before what was read, so that its start is not known. */
  readonly isCut: boolean;
  /** Which of the rows of its agent a loop takes, or of its loop a step: what goes on at once stands in different ones. */
  readonly slot: number;
  readonly outcome: string;
  /** The notification that began it; 0 if that was before what was read. */
  readonly seq: number;
}

export type ArrowKind = "mail" | "switch" | "reply" | "delegation" | "event" | "room" | "continuation";

/** That one loop led to another. */
export interface Arrow {
  readonly id: string;
  readonly kind: ArrowKind;
  readonly label: string;
  readonly from: string;
  readonly fromAt: number;
  readonly to: string;
  readonly toAt: number;
}

/** Where something came from that has not led to a loop yet. */
export interface Origin {
  readonly kind: ArrowKind;
  readonly label: string;
  readonly from: string;
  readonly at: number;
}

/** All that is known of a stretch of the log. The last five are what it needs to go on. */
export interface Chart {
  /** The last notification in it, and when that was. */
  readonly seq: number;
  readonly at: number;
  readonly bars: ReadonlyMap<string, Bar>;
  readonly arrows: ReadonlyMap<string, Arrow>;
  /** The bars that go on, by what ends them. */
  readonly open: ReadonlyMap<string, string>;
  /** What goes on in each loop, by what ends it. */
  readonly inside: ReadonlyMap<string, readonly string[]>;
  /** The newest bar of each task, and what it is about. */
  readonly loops: ReadonlyMap<string, string>;
  readonly summaries: ReadonlyMap<string, string>;
  /** Mails, tasks and what was said in rooms. */
  readonly origins: ReadonlyMap<string, Origin>;
  readonly slots: ReadonlyMap<string, readonly (string | null)[]>;
}

export const NO_CHART: Chart = {
  seq: 0,
  at: 0,
  bars: new Map(),
  arrows: new Map(),
  open: new Map(),
  inside: new Map(),
  loops: new Map(),
  summaries: new Map(),
  origins: new Map(),
  slots: new Map(),
};

export const ARROW_OF: Partial<Record<TaskKind, ArrowKind>> = {
  delegated_task: "delegation",
  event: "event",
  wake_up: "event",
  continuation: "continuation",
  room_message: "room",
  mailbox_message: "mail",
};

/** A chart in the making: its maps are its own. */
export class ChartDraft {
  readonly bars: Map<string, Bar>;
  readonly arrows: Map<string, Arrow>;
  readonly open: Map<string, string>;
  readonly inside: Map<string, readonly string[]>;
  readonly loops: Map<string, string>;
  readonly summaries: Map<string, string>;
  readonly origins: Map<string, Origin>;
  readonly slots: Map<string, readonly (string | null)[]>;

  constructor(
    before: Chart,
    public seq = before.seq,
    public at = before.at,
  ) {
    this.bars = new Map(before.bars);
    this.arrows = new Map(before.arrows);
    this.open = new Map(before.open);
    this.inside = new Map(before.inside);
    this.loops = new Map(before.loops);
    this.summaries = new Map(before.summaries);
    this.origins = new Map(before.origins);
    this.slots = new Map(before.slots);
  }

  /** Begin a bar that `key` will end. */
  begin(key: string, bar: Omit<Bar, "slot" | "end" | "outcome">): Bar {
    let id = bar.id;
    for (let turn = 2; this.bars.has(id); turn += 1) id = `${bar.id}#${turn}`;
    const begun = { ...bar, id, slot: this.#freeSlot(bar, id), end: null, outcome: "" };
    this.bars.set(id, begun);
    this.open.set(key, id);
    if (bar.parent !== null) this.inside.set(bar.parent, [...(this.inside.get(bar.parent) ?? []), key]);
    return begun;
  }

  /** End the bar that `key` stands for; nothing happens if there is none. */
  end(key: string, at: number, outcome: string): boolean {
    const id = this.open.get(key);
    const bar = id === undefined ? undefined : this.bars.get(id);
    if (bar === undefined) return false;
    this.open.delete(key);
    this.bars.set(bar.id, { ...bar, end: Math.max(at, bar.start), outcome });
    if (bar.parent !== null) {
      const rest = (this.inside.get(bar.parent) ?? []).filter((each) => each !== key);
      if (rest.length > 0) this.inside.set(bar.parent, rest);
      else this.inside.delete(bar.parent);
    }
    if (bar.kind === "task") {
      for (const each of this.inside.get(bar.id) ?? []) this.end(each, at, outcome);
      const slots = this.slots.get(bar.agentId) ?? [];
      this.slots.set(
        bar.agentId,
        slots.map((taken) => (taken === bar.id ? null : taken)),
      );
    }
    return true;
  }

  arrow(id: string, origin: Origin | undefined, to: string | undefined, toAt: number): void {
    if (origin === undefined || to === undefined || origin.from === to) return;
    const { kind, label, from, at } = origin;
    this.arrows.set(id, { id, kind, label, from, fromAt: at, to, toAt });
  }

  done(): Chart {
    const { seq, at, bars, arrows, open, inside, loops, summaries, origins, slots } = this;
    return { seq, at, bars, arrows, open, inside, loops, summaries, origins, slots };
  }

  #freeSlot({ kind, agentId, parent }: Omit<Bar, "slot" | "end" | "outcome">, id: string): number {
    if (kind === "task") {
      const slots = [...(this.slots.get(agentId) ?? [])];
      const free = slots.indexOf(null);
      const slot = free < 0 ? slots.length : free;
      slots[slot] = id;
      this.slots.set(agentId, slots);
      return slot;
    }
    if (parent === null || kind === "wait") return 0;
    const beside = (this.inside.get(parent) ?? []).map((key) => this.bars.get(this.open.get(key) ?? ""));
    const taken = new Set(beside.filter((bar) => bar && bar.kind !== "wait").map((bar) => bar?.slot));
    let slot = 0;
    while (taken.has(slot)) slot += 1;
    return slot;
  }
}
