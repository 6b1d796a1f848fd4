import type { Wait, WaitKind } from "../projection/world";

/** What is waited for; `holders` is left out where it would be told too early, or twice. */
export type Waited = Pick<Wait, "kind" | "target"> & Partial<Pick<Wait, "holders">>;

/** The name of what is waited for, with words before it; `to` are the parts of its address, if it has one. */
export interface WaitedParts {
  readonly before: string;
  readonly name: string;
  readonly to: readonly string[] | null;
  /** Who has it, as far as that is not its name already. */
  readonly holders: readonly string[];
}

const PARTS: Readonly<Record<WaitKind, (target: string) => Omit<WaitedParts, "holders">>> = {
  approval: (target) => ({ before: "", name: "your approval", to: ["approvals", target] }),
  question: (target) => ({ before: "", name: "your answer", to: ["questions", target] }),
  reply: (target) => ({ before: "an answer of ", name: target, to: ["agents", target] }),
  lock: (target) => ({ before: "the lock ", name: target, to: ["locks", target] }),
  resource: (target) => ({ before: "its turn at ", name: target, to: null }),
};

export function waitedParts({ kind, target, holders = [] }: Waited): WaitedParts {
  const isNamed = kind === "reply" || kind === "approval" || kind === "question";
  return { ...PARTS[kind](target), holders: isNamed ? [] : holders };
}

/** What is waited for, in words that follow "waits for". */
export function waitedFor(wait: Waited): string {
  const { before, name, holders } = waitedParts(wait);
  return `${before}${name}${holders.length > 0 ? `, with ${holders.join(", ")}` : ""}`;
}
