import { useCallback, useEffect, useRef, useState } from "react";
import type { MethodName, Notification, Params, Result } from "../client/client";
import { listen, usePage } from "./page";
import { server } from "./server";

export interface Answered<Value> {
  /** The newest answer; it stays while another is on its way. */
  readonly data: Value | undefined;
  readonly error: Error | null;
  readonly isLoading: boolean;
  readonly again: () => void;
}

const AGAIN_MS = 250;

/**
 * The answer to a call, asked again when the params change, when the connection comes back, and soon after a
 * notification that `refreshOn` says yes to. With `null` as params nothing is asked.
 */
export function useAnswer<M extends MethodName>(
  method: M,
  params: Params<M> | null,
  refreshOn?: (note: Notification) => boolean,
): Answered<Result<M>> {
  const key = params === null ? null : JSON.stringify([method, params]);
  const [answer, setAnswer] = useState<{ key: string | null; data?: Result<M>; error: Error | null }>({
    key,
    error: null,
  });
  const [turn, setTurn] = useState(0);
  const isOpen = usePage((page) => page.connection === "open");
  const matches = useRef(refreshOn);
  matches.current = refreshOn;
  const again = useCallback(() => setTurn((count) => count + 1), []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new turn asks again
  useEffect(() => {
    if (key === null || !isOpen) return;
    let isWanted = true;
    const call = server().call as (method: M, params: Params<M>) => Promise<Result<M>>;
    call.call(server(), method, JSON.parse(key)[1]).then(
      (data) => isWanted && setAnswer({ key, data, error: null }),
      (error) => isWanted && setAnswer((before) => (before.key === key ? { ...before, error } : { key, error })),
    );
    return () => {
      isWanted = false;
    };
  }, [method, key, isOpen, turn]);

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const leave = listen((notes) => {
      if (timer === undefined && matches.current && notes.some(matches.current)) {
        timer = setTimeout(() => {
          timer = undefined;
          again();
        }, AGAIN_MS);
      }
    });
    return () => {
      leave();
      clearTimeout(timer);
    };
  }, [again]);

  const data = answer.key === key ? answer.data : undefined;
  const error = answer.key === key ? answer.error : null;
  return { data, error, isLoading: key !== null && data === undefined && error === null, again };
}
