import { ConnectionLostError, type Notification, RpcError, type Subscription } from "../client/client";
import { reduce } from "../projection/reduce";
import { worldOf } from "../projection/snapshot";
import { NOTHING, tell, usePage } from "./page";
import { onOpen, server } from "./server";
import { written } from "./streams";

/** How long notifications are gathered before they are shown: twenty times a second is enough for the eye. */
const GATHER_MS = 50;
/** How many are taken in at once: more would hold up what the user does. */
const BATCH = 1_000;
const AGAIN_MS = 250;

let waiting: Notification[] = [];
let timer: ReturnType<typeof setTimeout> | undefined;
let subscription: Subscription | null = null;
/** Which load this is: what an earlier one still brings is not wanted any more. */
let turn = 0;
/** Whether the load was cut off by the connection, and is to be done again when there is one. */
let isCutOff = false;

onOpen(() => {
  void refreshServer();
  if (isCutOff) void load();
});

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
  const { connection, problem, server: info, sessions } = usePage.getState();
  usePage.setState({ ...NOTHING, connection, problem, server: info, sessions, sessionId });
  const isKnown = sessionId === null || sessions === null || sessions.some((known) => known.sessionId === sessionId);
  if (!isKnown) void refreshServer(); // it was made after the list was read
  await load();
}

/** Show the session as it is now, and what becomes of it from there on. */
async function load(): Promise<void> {
  const mine = begin();
  await leave();
  const { sessionId } = usePage.getState();
  if (sessionId === null || mine !== turn) return;
  try {
    const { createdAt } = await server().call("session.get", { sessionId });
    const snapshot = await server().call("session.snapshot", { sessionId });
    const live = worldOf(snapshot);
    if (mine !== turn) return;
    usePage.setState({
      createdAt,
      firstSeq: snapshot.firstSeq,
      base: live,
      live,
      streams: new Map(),
      isLoaded: true,
      ended: null,
      playhead: null,
    });
    const begun = await server().subscribe(
      sessionId,
      { after: live.seq, createdAt, deltas: true, onEnd: (error) => void ended(error, mine) },
      (note) => take(note, mine),
    );
    if (mine === turn) subscription = begun;
    else await begun.close();
  } catch (error) {
    await ended(error as Error, mine);
  }
}

/** Nothing of what was followed until now is shown any more. */
function begin(): number {
  clearTimeout(timer);
  timer = undefined;
  waiting = [];
  isCutOff = false;
  turn += 1;
  return turn;
}

async function leave(): Promise<void> {
  const last = subscription;
  subscription = null;
  await last?.close();
}

/** The session cannot be followed, or not any more. Another of its id may be there by now: then that one is shown. */
async function ended(error: Error, mine: number): Promise<void> {
  if (mine !== turn) return;
  subscription = null;
  isCutOff = error instanceof ConnectionLostError;
  if (isCutOff) return; // the state of the connection tells
  const code = error instanceof RpcError ? error.data.code : null;
  if (code === "closed") setTimeout(() => mine === turn && void load(), AGAIN_MS);
  else if (code === "unknown_session" && (await isThere())) await load();
  else if (mine === turn) {
    usePage.setState({ ended: error });
    void refreshServer(); // it is not in the list any more
  }
}

async function isThere(): Promise<boolean> {
  const { sessionId } = usePage.getState();
  if (sessionId === null) return false;
  return server()
    .call("session.get", { sessionId })
    .then(
      () => true,
      () => false,
    );
}

function take(note: Notification, mine: number): void {
  if (mine !== turn) return;
  if (note.name === "log.skipped") {
    void load(); // what is shown has a gap: it begins anew with a snapshot
    return;
  }
  waiting.push(note);
  timer ??= setTimeout(show, GATHER_MS);
}

function show(): void {
  const notes = waiting.splice(0, isWatched() ? BATCH : waiting.length);
  timer = waiting.length > 0 ? setTimeout(show, 0) : undefined;
  usePage.setState(({ live, streams }) => ({ live: reduce(live, notes), streams: written(streams, notes) }));
  tell(notes);
}

/** Whether somebody may be held up. The timers of a hidden page are slowed down: it takes all that waits. */
function isWatched(): boolean {
  return typeof document === "undefined" || !document.hidden;
}
