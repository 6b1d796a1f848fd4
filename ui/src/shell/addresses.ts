import { useCallback } from "react";
import { useSearchParams } from "wouter";
import { usePage } from "../state/page";

/** Where something of a session is shown. */
export function addressOf(sessionId: string, ...parts: string[]): string {
  return ["", "s", sessionId, ...parts.filter((part) => part !== "")].map(encodeURIComponent).join("/");
}

/** Makes addresses in the session that is shown: `to("agents", id)`. A query can be put behind them. */
export function useAddress(): (...parts: string[]) => string {
  const sessionId = usePage((page) => page.sessionId);
  return useCallback((...parts) => addressOf(sessionId ?? "", ...parts), [sessionId]);
}

/**
 * A choice of the user that is kept in the address, so that it can be shared and the Back button knows it. `fallback`
 * is not written down.
 */
export function useSelection(name: string, fallback = ""): [string, (value: string) => void] {
  const [search, setSearch] = useSearchParams();
  const choose = useCallback(
    (value: string) =>
      setSearch(
        (before) => {
          const after = new URLSearchParams(before);
          if (value === fallback) after.delete(name);
          else after.set(name, value);
          return after;
        },
        { replace: true },
      ),
    [setSearch, name, fallback],
  );
  return [search.get(name) ?? fallback, choose];
}
