import { useEffect, useLayoutEffect, useRef } from "react";
import { create } from "zustand";
import type { Notification } from "../../client/client";
import type { PendingApproval } from "../../projection/world";
import { listen, useIsPast, usePage } from "../../state/page";

/** What became of a call that waited, who decided it (nobody if it was withdrawn), and why. */
export interface Outcome {
  readonly state: "approved" | "refused" | "withdrawn";
  readonly by: string;
  readonly reason: string;
}

export type Outcomes = ReadonlyMap<string, Outcome>;

const NONE: Outcomes = new Map();
/** How long a decided call stays where it was, if nobody looks at the list any more. */
const LINGER_MS = 3_000;

/** A store, so that a card learns what became of it in the same moment in which it does not wait any more. */
const useOutcomes = create<{ outcomes: Outcomes }>()(() => ({ outcomes: NONE }));

/**
 * The cards to show, and what became of those that do not wait any more. They stay in their place while the pointer is
 * in the list, or the focus of the keyboard, and a moment longer: else the next one would move to where they stood.
 */
export function useStanding(
  waiting: readonly PendingApproval[],
  isWanted: (approval: PendingApproval) => boolean,
  list: { readonly current: HTMLElement | null },
): { shown: readonly PendingApproval[]; outcomes: Outcomes } {
  const isPast = useIsPast();
  const outcomes = useOutcomes(({ outcomes }) => (isPast ? NONE : outcomes));
  const before = useRef<readonly PendingApproval[]>([]);
  const shown = withKept(before.current, waiting, (each) => outcomes.has(each.approvalId) && isWanted(each));
  useLayoutEffect(() => {
    before.current = shown;
  });
  useEffect(() => {
    const stop = listen(note);
    return () => {
      stop();
      useOutcomes.setState({ outcomes: NONE });
    };
  }, []);
  useEffect(() => {
    if (outcomes.size === 0) return;
    const timer = setInterval(() => {
      if (!isLookedAt(list.current)) useOutcomes.setState({ outcomes: NONE });
    }, LINGER_MS);
    return () => clearInterval(timer);
  }, [outcomes, list]);
  return { shown, outcomes };
}

function note(notes: readonly Notification[]): void {
  const found = notes.flatMap((each) => outcomeOf(each) ?? []);
  if (found.length === 0 || usePage.getState().playhead !== null) return;
  useOutcomes.setState(({ outcomes }) => ({ outcomes: new Map([...outcomes, ...found]) }));
}

function outcomeOf({ name, params }: Notification): readonly (readonly [string, Outcome])[] {
  switch (name) {
    case "approval.approved":
      return [[params.approvalId, { state: "approved", by: params.decidedBy, reason: params.reason }]];
    case "approval.refused":
      return [[params.approvalId, { state: "refused", by: params.decidedBy, reason: params.reason }]];
    case "approval.withdrawn":
      return [[params.approvalId, { state: "withdrawn", by: "", reason: params.reason }]];
    default:
      return [];
  }
}

/** A finger leaves no pointer behind, though browsers say so. */
function isLookedAt(list: HTMLElement | null): boolean {
  if (list === null) return false;
  const isUnderPointer = matchMedia("(hover: hover)").matches && list.matches(":hover");
  return isUnderPointer || list.querySelector(":focus-visible") !== null;
}

/** Those that wait, and between them, where they stood, those of before that are kept. */
export function withKept(
  before: readonly PendingApproval[],
  waiting: readonly PendingApproval[],
  isKept: (approval: PendingApproval) => boolean,
): readonly PendingApproval[] {
  const ids = new Set(waiting.map(({ approvalId }) => approvalId));
  const shown = [...waiting];
  let above = ""; // the last one before it that is shown
  for (const approval of before) {
    const isGone = !ids.has(approval.approvalId);
    if (isGone && !isKept(approval)) continue;
    if (isGone) shown.splice(shown.findIndex(({ approvalId }) => approvalId === above) + 1, 0, approval);
    above = approval.approvalId;
  }
  return shown.length === waiting.length ? waiting : shown;
}
