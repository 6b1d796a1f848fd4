import { useLocation } from "wouter";
import { usePage } from "../state/page";
import { useTitles } from "../state/titles";
import { addressOf } from "./addresses";

/** Which session is shown, and the way to another. */
export function SessionPicker() {
  const sessions = usePage((page) => page.sessions);
  const sessionId = usePage((page) => page.sessionId);
  const titleOf = useTitles();
  const [, go] = useLocation();
  return (
    <select
      className="session-picker"
      aria-label="Session"
      value={sessionId ?? ""}
      onChange={({ target: { value } }) => go(value === "" ? "/sessions" : addressOf(value))}
    >
      {sessions?.map((session) => (
        <option key={session.sessionId} value={session.sessionId}>
          {titleOf(session.sessionId)}
        </option>
      ))}
      {sessionId !== null && !sessions?.some((session) => session.sessionId === sessionId) && (
        <option value={sessionId}>{sessionId}</option>
      )}
      <option value="">All sessions…</option>
    </select>
  );
}
