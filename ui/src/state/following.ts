import type { Notification, Subscription } from "../client/client";
import { reduce } from "../projection/reduce";
import { EMPTY } from "../projection/world";
import { NOTHING, tell, usePage } from "./page";
import { onOpen, server } from "./server";
import { written } from "./streams";

/** How long notifications are gathered before they are shown: once a frame is enough for the eye. */
const GATHER_MS = 50;
/** How many are taken in at once: more would hold up what the user does. */
const BATCH = 2_000;

let waiting: Notification[] = [];
let timer: ReturnType<typeof setTimeout> | undefined;
let subscription: Subscription | null = null;
let following = 0;

onOpen(() => void refreshServer());

async function refreshServer(): Promise<void> {
  try {
    const [info, { sessions }] = await Promise.all([
      server().call("server.info"),
      server().call("session.list", { limit: 1000 }),
    ]);
    usePage.setState({ server: info, sessions });
  } catch {
    // The connection broke again: it is asked anew when there is one.
  }
}

/** Read the list of sessions again. */
export const refreshSessions = refreshServer;

/** Show this session from now on, or none. */
export async function follow(sessionId: string | null): Promise<void> {
  if (usePage.getState().sessionId === sessionId) return;
  const turn = ++following;
  clearTimeout(timer);
  timer = undefined;
  waiting = [];
  const { connection, problem, server: info, sessions } = usePage.getState();
  usePage.setState({ ...NOTHING, connection, problem, server: info, sessions, sessionId });
  const last = subscription;
  subscription = null;
  await last?.close();
  if (sessionId === null || turn !== following) return;
  try {
    const { createdAt } = await server().call("session.get", { sessionId });
    const { lastSeq } = await server().call("events.list", { sessionId, limit: 1 });
    if (turn !== following) return;
    usePage.setState({ createdAt, live: EMPTY, isLoaded: lastSeq === 0 });
    subscription = await server().subscribe(
      sessionId,
      { after: 0, deltas: true, onEnd: (problem) => usePage.setState({ problem }) },
      (note) => take(note, turn, lastSeq),
    );
  } catch (error) {
    if (turn === following) usePage.setState({ problem: error as Error });
  }
}

function take(note: Notification, turn: number, lastSeq: number): void {
  if (turn !== following) return;
  waiting.push(note);
  timer ??= setTimeout(() => show(lastSeq), GATHER_MS);
}

function show(lastSeq: number): void {
  const notes = waiting.splice(0, BATCH);
  timer = waiting.length > 0 ? setTimeout(() => show(lastSeq), 0) : undefined;
  usePage.setState((page) => {
    const live = reduce(page.live, notes);
    return { live, streams: written(page.streams, notes), isLoaded: page.isLoaded || live.seq >= lastSeq };
  });
  tell(notes);
}
