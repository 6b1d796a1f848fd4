import { useMemo } from "react";
import type { SessionSummary } from "../client/client";
import { usePage } from "./page";

/** What sessions are called, by id: their titles, with the id where several have one title, as forks of a session do. */
export function titlesOf(
  sessions: readonly Pick<SessionSummary, "sessionId" | "title">[],
): ReadonlyMap<string, string> {
  const counts = new Map<string, number>();
  for (const { title } of sessions) counts.set(title, (counts.get(title) ?? 0) + 1);
  const called = (title: string, sessionId: string) =>
    (counts.get(title) ?? 0) > 1 ? `${title} (${sessionId})` : title;
  return new Map(
    sessions.map(({ sessionId, title }) => [sessionId, title === "" ? sessionId : called(title, sessionId)]),
  );
}

/** What a session is called; its id, if it is not among those of the user. */
export function useTitles(): (sessionId: string) => string {
  const sessions = usePage((page) => page.sessions);
  return useMemo(() => {
    const titles = titlesOf(sessions ?? []);
    return (sessionId) => titles.get(sessionId) ?? sessionId;
  }, [sessions]);
}
