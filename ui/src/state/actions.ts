import { create } from "zustand";
import type { MethodName, Params, Result } from "../client/client";
import { ConnectionLostError, RpcError } from "../client/errors";
import { onAnotherSession, usePage, whyNotLive } from "./page";
import { server } from "./server";

/** Something that the user is told for a while: that a call failed, or what it did. */
export interface Notice {
  readonly id: number;
  readonly text: string;
  readonly isProblem: boolean;
  /** What would do it again. */
  readonly retry: (() => void) | null;
}

export const useNotices = create<{ notices: readonly Notice[] }>()(() => ({ notices: [] }));

/** More would cover the page. */
const MOST = 3;

let lastId = 0;

export function notify(
  text: string,
  { isProblem = false, retry = null }: Partial<Omit<Notice, "id" | "text">> = {},
): void {
  const notice = { id: ++lastId, text, isProblem, retry };
  useNotices.setState(({ notices }) => {
    const others = notices.filter((other) => other.text !== text); // the same is not told twice at once
    return { notices: [...others.slice(1 - MOST), notice] };
  });
}

export function dismiss(id: number): void {
  useNotices.setState(({ notices }) => ({ notices: notices.filter((notice) => notice.id !== id) }));
}

/** The problems were about the place before: forget them. What was done is told to its end. */
export function forgetProblems(): void {
  useNotices.setState(({ notices }) => ({ notices: notices.filter(({ isProblem }) => !isProblem) }));
}

const PASSING: ReadonlySet<unknown> = new Set(["too_many_requests", "queue_full", "store_full", "store_failed"]);

/** Whether the same may work later: the server could not be reached, or had too much to do. */
export function mayPass(error: unknown): boolean {
  if (error instanceof ConnectionLostError) return true;
  return error instanceof RpcError && PASSING.has(error.data.code);
}

onAnotherSession(() => useNotices.setState({ notices: [] })); // they were about the session before

/**
 * Do something to the session that is shown: the call's `sessionId` is added. The answer is undefined if it failed;
 * then the user is told why, and can try again what may work later.
 */
export async function act<M extends MethodName>(
  method: M,
  params: Omit<Params<M>, "sessionId">,
): Promise<Result<M> | undefined> {
  return actIn(usePage.getState().sessionId, method, params);
}

/** As `act`, for a form that tells itself why it failed: with the sentence that is thrown. */
export async function attempt<M extends MethodName>(
  method: M,
  params: Omit<Params<M>, "sessionId">,
): Promise<Result<M>> {
  return attemptIn(usePage.getState().sessionId, method, params);
}

async function actIn<M extends MethodName>(
  sessionId: string | null,
  method: M,
  params: object,
): Promise<Result<M> | undefined> {
  try {
    return await attemptIn(sessionId, method, params);
  } catch (error) {
    const retry = mayPass(error) ? () => void actIn(sessionId, method, params) : null;
    notify((error as Error).message, { isProblem: true, retry });
    return undefined;
  }
}

async function attemptIn<M extends MethodName>(
  sessionId: string | null,
  method: M,
  params: object,
): Promise<Result<M>> {
  if (usePage.getState().playhead !== null) throw new Error(whyNotLive());
  const call = server().call as (method: M, params: object) => Promise<Result<M>>;
  return call.call(server(), method, { sessionId, ...params });
}
