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
  const isOpen = usePage((page) => page.connection === "open");
  const matches = useRef(refreshOn);
  matches.current = refreshOn;
  const ask = useRef(() => {});
  const again = useCallback(() => ask.current(), []);

  useEffect(() => {
    if (key === null || !isOpen) return;
    const call = server().call as (method: M, params: Params<M>) => Promise<Result<M>>;
    const { again: next, leave } = oneAtATime(() =>
      call.call(server(), method, JSON.parse(key)[1]).then(
        (data) => () => setAnswer({ key, data, error: null }),
        (error) => () => setAnswer((before) => (before.key === key ? { ...before, error } : { key, error })),
      ),
    );
    ask.current = next;
    next();
    return () => {
      leave();
      ask.current = () => {};
    };
  }, [method, key, isOpen]);

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

/**
 * Asks again whenever it is told to, but not before the last answer is there: while things change faster than answers
 * come, each answer is still shown. What an answer leads to is done unless it was left by then.
 */
function oneAtATime(asked: () => Promise<() => void>): { again: () => void; leave: () => void } {
  let isLeft = false;
  let isUnderWay = false;
  let isDue = false;
  async function again(): Promise<void> {
    isDue = true;
    if (isUnderWay) return;
    isUnderWay = true;
    while (isDue && !isLeft) {
      isDue = false;
      const show = await asked();
      if (!isLeft) show();
    }
    isUnderWay = false;
  }
  return {
    again: () => void again(),
    leave: () => {
      isLeft = true;
    },
  };
}
