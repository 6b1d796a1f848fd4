import { usePage } from "../../state/page";

/** What a session is called, with its id: forks of one have one title. */
export function useTitle(sessionId: string): string {
  const title = usePage((page) => page.sessions?.find((session) => session.sessionId === sessionId)?.title);
  return title ? `${title} (${sessionId})` : sessionId;
}
