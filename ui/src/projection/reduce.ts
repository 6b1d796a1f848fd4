import type { Notification, NotificationName, NotificationOf } from "../client/client";
import { AGENTS } from "./agents";
import { CLOCK } from "./clock";
import { CHANGES } from "./coordination";
import { Draft } from "./draft";
import { TASKS } from "./tasks";
import type { World } from "./world";

/** What a notification of each name changes. One that is not here changes nothing that is shown. */
export type Changes = {
  [N in NotificationName]?: (draft: Draft, note: NotificationOf<N>) => void;
};

const ALL: Changes = { ...AGENTS, ...TASKS, ...CHANGES, ...CLOCK };

/** The world after these notifications. Those that it has already, and those without a number, change nothing. */
export function reduce(world: World, notes: Iterable<Notification>): World {
  const draft = new Draft(world);
  for (const note of notes) {
    if (note.seq <= draft.seq) continue;
    const change = ALL[note.name] as ((draft: Draft, note: Notification) => void) | undefined;
    change?.(draft, note);
    draft.seq = note.seq;
    draft.at = note.at;
  }
  return draft.seq === world.seq ? world : draft.done();
}
