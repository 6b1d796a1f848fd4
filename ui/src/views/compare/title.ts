import { usePage } from "../../state/page";

/** What a session is called. */
export function useTitle(sessionId: string): string {
  const title = usePage((page) => page.sessions?.find((session) => session.sessionId === sessionId)?.title);
  return title || sessionId;
}
