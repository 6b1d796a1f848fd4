import { Client, type ConnectionState } from "../client/client";
import { usePage } from "./page";

/** What the page needs of its server. */
export type Server = Pick<Client, "call" | "subscribe">;

let made: Server | null = null;
const openings = new Set<() => void>();

/** The page's one connection, made when it is first needed. It finds its way back by itself. */
export function server(): Server {
  made ??= new Client({
    url: location.origin,
    maxRetrySeconds: 3,
    onState: connectionChanged,
  });
  return made;
}

/** The connection is made, broken or refused. */
export function connectionChanged(connection: ConnectionState, error?: Error): void {
  usePage.setState({ connection, problem: error ?? null });
  if (connection === "open") for (const opened of openings) opened();
}

/** Have something done whenever there is a connection again. */
export function onOpen(opened: () => void): void {
  openings.add(opened);
}

/** Talk to this one instead: for tests. */
export function replaceServer(other: Server): void {
  made = other;
  usePage.setState({ connection: "open", problem: null });
}
