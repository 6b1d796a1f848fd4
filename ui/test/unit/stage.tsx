import { cleanup, render } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach } from "vitest";
import { Router } from "wouter";
import { memoryLocation } from "wouter/memory-location";
import type {
  MethodName,
  Notification,
  NotificationName,
  Notifications,
  Params,
  Result,
} from "../../src/client/client";
import { reduce } from "../../src/projection/reduce";
import { EMPTY } from "../../src/projection/world";
import { NOTHING, usePage } from "../../src/state/page";
import { replaceServer, type Server } from "../../src/state/server";

afterEach(cleanup);

let lastSeq = 0;

/** A notification as the server would send it; each has the number after the one before, and its second. */
export function note<N extends NotificationName>(name: N, params: Notifications[N], cause = ""): Notification {
  lastSeq += 1;
  return { seq: lastSeq, sessionId: "default", name, cause, at: 1_000 + lastSeq, params } as Notification;
}

type Answers = { [M in MethodName]?: (params: Params<M>) => Result<M> };

export interface Stage {
  /** What was called, in order. */
  readonly calls: { method: MethodName; params: Record<string, unknown> }[];
}

/** Show the page a session in which this has happened, with a server that answers so. */
export function setStage(notes: readonly Notification[], answers: Answers = {}): Stage {
  const calls: Stage["calls"] = [];
  async function call(method: MethodName, params: Record<string, unknown> = {}): Promise<unknown> {
    calls.push({ method, params });
    const answer = answers[method] as ((params: object) => unknown) | undefined;
    if (answer === undefined) throw new Error(`The stage has no answer to ${method}.`);
    return answer(params);
  }
  replaceServer({
    call,
    subscribe: () => Promise.reject(new Error("There is nothing to follow.")),
  } as unknown as Server);
  usePage.setState({
    ...NOTHING,
    connection: "open",
    sessionId: "default",
    isLoaded: true,
    live: reduce(EMPTY, notes),
  });
  return { calls };
}

/** Render at an address of the page. */
export function renderAt(address: string, content: ReactNode) {
  const [path = "", search = ""] = address.split("?");
  const { hook, searchHook, history } = memoryLocation({ path, searchPath: search, record: true });
  const shown = render(
    <Router hook={hook} searchHook={searchHook}>
      {content}
    </Router>,
  );
  return { ...shown, history };
}
