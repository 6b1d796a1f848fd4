import type { IconName } from "../../parts/Icon";
import type { WaitKind } from "../../projection/world";
import type { ShownKind } from "./scene";

export const KIND_ICONS: Record<ShownKind, IconName> = {
  mail: "inbox",
  switch: "again",
  delegation: "forward",
  event: "events",
  wait: "schedules",
};

export const KIND_WORDS: Record<ShownKind, { one: string; many: string }> = {
  mail: { one: "mail", many: "mails" },
  switch: { one: "switch", many: "switches" },
  delegation: { one: "delegation", many: "delegations" },
  event: { one: "event", many: "events" },
  wait: { one: "wait", many: "waits" },
};

export const WAIT_ICONS: Record<WaitKind, IconName> = {
  reply: "again",
  lock: "locks",
  approval: "approvals",
  question: "questions",
  resource: "pause",
};

/** "3 mails" */
export function counted(kind: ShownKind, count: number): string {
  return `${count} ${count === 1 ? KIND_WORDS[kind].one : KIND_WORDS[kind].many}`;
}
