import { cleanup, render } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach } from "vitest";
import "wouter/use-browser-location"; // lets the window tell of pushState and replaceState
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

const WAYS = ["pushState", "replaceState"];
let leave = () => {};

afterEach(() => {
  cleanup();
  leave();
});

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

/** Render at an address of the page. `history` grows by what is gone to; what replaces an address takes its place. */
export function renderAt(address: string, content: ReactNode) {
  window.history.replaceState(null, "", address);
  const history = [address];
  const keep = ({ type }: Event) =>
    history.splice(history.length - (type === "replaceState" ? 1 : 0), 1, location.pathname + location.search);
  for (const way of WAYS) addEventListener(way, keep);
  leave = () => {
    for (const way of WAYS) removeEventListener(way, keep);
  };
  return { ...render(content), history };
}
