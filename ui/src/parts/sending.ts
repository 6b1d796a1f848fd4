import { ConnectionLostError } from "../client/client";

/** Why something that has an id of its own was not sent, or not known to be: then to try again sends it once. */
export function whyNotSent(error: Error): string {
  if (!(error instanceof ConnectionLostError)) return `Not sent. ${error.message}`;
  return error.sent
    ? "The connection was lost before the server answered. Try again: it is not sent twice."
    : "Not sent: there is no connection. Try again.";
}
