import { create } from "zustand";
import type { MethodName, Params, Result } from "../client/client";
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

let lastId = 0;

export function notify(
  text: string,
  { isProblem = false, retry = null }: Partial<Omit<Notice, "id" | "text">> = {},
): void {
  const notice = { id: ++lastId, text, isProblem, retry };
  useNotices.setState(({ notices }) => ({ notices: [...notices.slice(-4), notice] }));
}

export function dismiss(id: number): void {
  useNotices.setState(({ notices }) => ({ notices: notices.filter((notice) => notice.id !== id) }));
}

onAnotherSession(() => useNotices.setState({ notices: [] })); // they were about the session before

/**
 * Do something to the session that is shown: the call's `sessionId` is added. The answer is undefined if it failed;
 * then the user is told why, and can try again.
 */
export async function act<M extends MethodName>(
  method: M,
  params: Omit<Params<M>, "sessionId">,
): Promise<Result<M> | undefined> {
  return actIn(usePage.getState().sessionId, method, params);
}

async function actIn<M extends MethodName>(
  sessionId: string | null,
  method: M,
  params: object,
): Promise<Result<M> | undefined> {
  if (usePage.getState().playhead !== null) {
    notify(whyNotLive(), { isProblem: true });
    return undefined;
  }
  const call = server().call as (method: M, params: object) => Promise<Result<M>>;
  try {
    return await call.call(server(), method, { sessionId, ...params });
  } catch (error) {
    notify((error as Error).message, { isProblem: true, retry: () => void actIn(sessionId, method, params) });
    return undefined;
  }
}
