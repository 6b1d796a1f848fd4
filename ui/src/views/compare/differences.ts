import { useEffect, useMemo, useState } from "react";
import type { Comparison, Parting } from "../../client/client";
import type { NameOf } from "../../history/telling";
import { addressOf } from "../../shell/addresses";
import type { Mark } from "../timeline/Marks";
import { type Both, type SessionLog, timesOf } from "./logs";

/** What is shown of a comparison, and of which sessions it is. */
export interface ComparedProps {
  readonly a: string;
  readonly b: string;
  readonly comparison: Comparison;
  readonly nameOf: NameOf;
}

/** Of so many agents the first difference is marked in the timelines. */
export const MOST_MARKED = 30;

/** What the first difference of an agent is, after its name. */
export function kindInWords({ kind }: Parting): string {
  const words = {
    answer: "answers differently",
    result: "gets another result of a tool",
    only_in_a: "does something only in A",
    only_in_b: "does something only in B",
  };
  return words[kind];
}

/** Where an entry of a log is shown, with the page as it was at that moment. */
export function entryAddress(sessionId: string, seq: number): string {
  return `${addressOf(sessionId, "log")}?at=${seq}&entry=${seq}`;
}

export function seqOf(parting: Parting, side: 0 | 1): number | null {
  return side === 0 ? parting.seqA : parting.seqB;
}

/** The partings that are marked: the first one of all and those of the first agents. */
export function markedOf({ first, partings }: Comparison): Parting[] {
  const others = partings.filter(({ agentId }) => agentId !== first?.agentId);
  return (first === null ? others : [first, ...others]).slice(0, MOST_MARKED);
}

export type Times = Both<ReadonlyMap<number, number>>;

/** When the entries were that tell of the first differences; null until it is known. */
export function useTimes(logs: Both<SessionLog> | null, marked: readonly Parting[] | null): Times | null {
  const [known, setKnown] = useState<{ of: readonly Parting[]; times: Times } | null>(null);
  useEffect(() => {
    if (logs === null || marked === null) return;
    let isLeft = false;
    const ask = (side: 0 | 1) => {
      const seqs = marked.map((parting) => seqOf(parting, side)).filter((seq) => seq !== null);
      return timesOf(logs[side].sessionId, seqs);
    };
    Promise.all([ask(0), ask(1)]).then(
      (times) => isLeft || setKnown({ of: marked, times }),
      () => isLeft || setKnown({ of: marked, times: [new Map(), new Map()] }), // they are told in words all the same
    );
    return () => {
      isLeft = true;
    };
  }, [logs, marked]);
  return known?.times ?? null;
}

interface Marked {
  readonly side: 0 | 1;
  readonly sessionId: string;
  readonly marked: readonly Parting[] | null;
  readonly times: Times | null;
  readonly nameOf: NameOf;
}

/** The signs in the timeline of one of the two. */
export function useMarks({ side, sessionId, marked, times, nameOf }: Marked): Mark[] {
  return useMemo(() => {
    const marks: Mark[] = [];
    for (const [place, parting] of (marked ?? []).entries()) {
      const seq = seqOf(parting, side);
      const at = seq === null ? undefined : times?.[side].get(seq);
      if (seq === null || at === undefined) continue;
      const what = `${nameOf(parting.agentId)} ${kindInWords(parting)}`;
      const label = `${place === 0 ? "First difference of all" : "First difference"}: ${what}, entry ${seq}`;
      marks.push({ agentId: parting.agentId, at, label, address: entryAddress(sessionId, seq), isLine: place === 0 });
    }
    return marks;
  }, [side, sessionId, marked, times, nameOf]);
}
