import { create } from "zustand";
import type { MethodName } from "../client/client";
import { count } from "../parts/format";
import { openDialog } from "../shell/dialogState";
import { attempt, mayPass, notify } from "../state/actions";
import { usePage, whyNotLive } from "../state/page";
import { server } from "../state/server";
import { ACTIONS, type Action, asks, toldOf } from "./lifecycle";
import { agentsInWords } from "./text";

/** How many calls are under way at once: enough to be quick, few enough for the page to stay live. */
const AT_ONCE = 16;

export interface Failed {
  readonly agentId: string;
  readonly why: string;
  /** Whether the same may work later. */
  readonly mayPass: boolean;
}

/** How something ended that was done to several agents. */
export interface Outcome {
  readonly sessionId: string | null;
  readonly action: Action;
  readonly params: object;
  readonly worked: number;
  readonly failed: readonly Failed[];
  /** How many were not tried any more, since the user had enough of it. */
  readonly left: number;
}

interface Under {
  readonly text: string;
  readonly done: number;
  readonly total: number;
}

/** What is being done to many agents. */
export const useBulk = create<{ under: Under | null }>()(() => ({ under: null }));

let isCancelled = false;

/** Do no more of it: what is under way ends. */
export function cancelBulk(): void {
  isCancelled = true;
}

/** Do something to agents; what has to be asked first is asked. */
export function steer(action: Action, agentIds: readonly string[]): void {
  if (agentIds.length === 0) return;
  if (asks(action)) openDialog({ kind: "steer", action, agentIds });
  else void perform(action, agentIds, {});
}

/** Do it to each of the agents of a session, that which is shown if none is given, and tell the user how it ended. */
export async function perform(
  action: Action,
  agentIds: readonly string[],
  params: object,
  sessionId = usePage.getState().sessionId,
): Promise<void> {
  if (usePage.getState().playhead !== null) {
    notify(whyNotLive(), { isProblem: true });
    return;
  }
  const { method, doing } = ACTIONS[action];
  isCancelled = false;
  const text = toldOf(doing, agentsInWords(agentIds));
  const isLong = agentIds.length > AT_ONCE;
  if (isLong) useBulk.setState({ under: { text, done: 0, total: agentIds.length } });
  const call = server().call as (method: MethodName, params: object) => Promise<unknown>;
  const failed: Failed[] = [];
  let next = 0;
  let done = 0;
  async function work(): Promise<void> {
    while (next < agentIds.length && !isCancelled) {
      const agentId = agentIds[next++] as string;
      try {
        await call.call(server(), method, { sessionId, agentId, ...paramsFor(agentId, params) });
      } catch (error) {
        failed.push({ agentId, why: (error as Error).message, mayPass: mayPass(error) });
      }
      done += 1;
      if (isLong && done % AT_ONCE === 0) useBulk.setState({ under: { text, done, total: agentIds.length } });
    }
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, agentIds.length) }, work));
  if (isLong) useBulk.setState({ under: null });
  report({ sessionId, action, params, worked: done - failed.length, failed, left: agentIds.length - done }, agentIds);
}

/**
 * Do what a dialog asked for. With a single agent it is done while the dialog waits, and fails with why it was not
 * done; with several it goes on when the dialog is closed, and how it ended is told then.
 */
export async function performAsked(action: Action, agentIds: readonly string[], params: object): Promise<undefined> {
  const [agentId] = agentIds;
  const { sessionId } = usePage.getState();
  if (agentId === undefined || agentIds.length > 1) {
    setTimeout(() => void perform(action, agentIds, params, sessionId)); // what it opens is not closed with the dialog
    return;
  }
  const call = attempt as (method: MethodName, params: object) => Promise<unknown>;
  await call(ACTIONS[action].method, { agentId, ...paramsFor(agentId, params) });
  notify(`${toldOf(ACTIONS[action].done, agentsInWords(agentIds))}.`);
}

/** What is sent again under the same key is done once, also if it is not known whether it arrived the first time. */
function paramsFor(agentId: string, params: { taskKey?: string }): object {
  const { taskKey, ...rest } = params;
  return taskKey === undefined ? rest : { ...rest, taskId: `${taskKey}.${agentId}` };
}

function report(outcome: Outcome, agentIds: readonly string[]): void {
  const { sessionId, action, params, failed, left } = outcome;
  const [only] = failed;
  if (usePage.getState().sessionId !== sessionId) reportElsewhere(outcome);
  else if (failed.length === 0 && left === 0) notify(`${toldOf(ACTIONS[action].done, agentsInWords(agentIds))}.`);
  else if (only && agentIds.length === 1) {
    const retry = only.mayPass ? () => void perform(action, agentIds, params, sessionId) : null;
    notify(only.why, { isProblem: true, retry });
  } else openDialog({ kind: "outcome", outcome });
}

/** The user looks at another session by now: nothing about these agents is to be decided there. */
function reportElsewhere({ sessionId, action, worked, failed, left }: Outcome): void {
  const missed = failed.length + left;
  const ended = missed === 0 ? "" : ` It was not done to ${count(missed)} of them. ${failed[0]?.why ?? ""}`;
  const agents = worked === 1 ? "agent" : "agents";
  notify(`In the session ${sessionId}: ${toldOf(ACTIONS[action].done, `${count(worked)} ${agents}`)}.${ended}`, {
    isProblem: missed > 0,
  });
}
