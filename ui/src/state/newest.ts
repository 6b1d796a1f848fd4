import { useEffect, useState } from "react";
import type { Notification, Params, Result } from "../client/client";
import { type Answered, useAnswer } from "./answers";
import { useHorizon } from "./horizon";

/** The calls that answer with the newest of something first, and with no more than they are asked for. */
type Listing = "async.listEvents" | "mail.list" | "mail.listSent" | "task.list" | "approval.list" | "question.list";

interface Bounds {
  /** How many of them are shown. */
  readonly wanted: number;
  readonly refreshOn?: (note: Notification) => boolean;
}

export interface Newest<Value> extends Answered<Value> {
  /** Whether there may be older ones than these. */
  readonly hasOlder: boolean;
  /** Of an earlier time: so many of the newest were looked through, and still there may be others. */
  readonly lookedThrough: number | null;
}

/** More than so many are not asked for to find those of an earlier time. */
export const MOST_LOOKED = 10_000;

/**
 * The newest of a list. Of an earlier time those that came later say nothing: then more are asked for, until as many
 * are from before it as are wanted.
 */
export function useNewest<M extends Listing>(
  method: M,
  params: Omit<Params<M>, "limit"> | null,
  { wanted, refreshOn }: Bounds,
): Newest<Result<M>> {
  const at = useHorizon();
  const [further, setFurther] = useState(0);
  const isPast = at !== Number.POSITIVE_INFINITY;
  const limit = isPast ? Math.max(wanted, further) : wanted;
  const answer = useAnswer(method, params === null ? null : ({ ...params, limit } as Params<M>), refreshOn);
  const rows = answer.data === undefined ? null : timesOf(answer.data);
  const isFull = rows !== null && rows.length >= limit;
  const lacksSome = isPast && isFull && rows.filter((time) => time <= at).length < wanted;
  useEffect(() => {
    if (lacksSome && limit < MOST_LOOKED) setFurther(Math.min(limit * 4, MOST_LOOKED));
  }, [lacksSome, limit]);
  return {
    ...answer,
    isLoading: answer.isLoading || (lacksSome && limit < MOST_LOOKED),
    hasOlder: isFull,
    lookedThrough: lacksSome && limit >= MOST_LOOKED ? limit : null,
  };
}

type Timed = { readonly createdAt: number } | { readonly requestedAt: number };

/** When each of them came about. */
function timesOf(data: object): number[] {
  const [rows = []] = Object.values(data) as readonly (readonly Timed[])[];
  return rows.map((row) => ("createdAt" in row ? row.createdAt : row.requestedAt));
}
