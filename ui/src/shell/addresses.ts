import { useCallback, useEffect, useMemo, useRef } from "react";
import { navigate, usePathname, useSearch } from "wouter/use-browser-location";
import { usePage } from "../state/page";

/** Where something of a session is shown. */
export function addressOf(sessionId: string, ...parts: string[]): string {
  return ["", "s", sessionId, ...parts.filter((part) => part !== "")].map(encoded).join("/");
}

/** Makes addresses in the session that is shown: `to("agents", id)`. A query can be put behind them. */
export function useAddress(): (...parts: string[]) => string {
  const sessionId = usePage((page) => page.sessionId);
  return useCallback((...parts) => addressOf(sessionId ?? "", ...parts), [sessionId]);
}

/** What stands between the slashes of the address. Any id may be among it: each part is decoded by itself, and once. */
export function partsOf(pathname: string): string[] {
  return pathname
    .split("/")
    .filter((part) => part !== "")
    .map(decoded);
}

/** The place in a session that the address names; `sessionId` is null if it names none. */
export interface Place {
  readonly sessionId: string | null;
  /** The path of the view; empty for the first one. */
  readonly view: string;
  /** What is opened in it. */
  readonly item: string | undefined;
  /** Whether the address goes on after that: then there is nothing at it. */
  readonly isTooLong: boolean;
}

export function placeOf(pathname: string): Place {
  const [root, sessionId = null, view = "", item, ...rest] = partsOf(pathname);
  if (root !== "s") return { sessionId: null, view: "", item: undefined, isTooLong: false };
  return { sessionId, view, item, isTooLong: rest.length > 0 };
}

/** The place that is shown. (The router's own patterns and params are not for ids: it decodes the path as a whole.) */
export function usePlace(): Place {
  const pathname = usePathname();
  return useMemo(() => placeOf(pathname), [pathname]);
}

/** Leads to an address that is known only after a while; but nobody who has gone elsewhere by then. */
export function useLeading(): (address: string) => void {
  const isHere = useRef(false);
  useEffect(() => {
    isHere.current = true;
    return () => {
      isHere.current = false;
    };
  }, []);
  return useCallback((address) => {
    if (isHere.current) navigate(address);
  }, []);
}

/**
 * What the address holds behind its `?`, and a way to change some of it: null takes a name away. It is the address as
 * it is by then that is changed, so that several changes of one moment add up.
 */
export function useQuery(): [URLSearchParams, (changes: Readonly<Record<string, string | null>>) => void] {
  const search = useSearch();
  return [useMemo(() => new URLSearchParams(search), [search]), changeQuery];
}

function changeQuery(changes: Readonly<Record<string, string | null>>): void {
  const after = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) after.delete(name);
    else after.set(name, value);
  }
  const text = after.toString();
  navigate(location.pathname + (text === "" ? "" : `?${text}`), { replace: true });
}

/**
 * A choice of the user that is kept in the address, so that it can be shared and the Back button knows it. `fallback`
 * is not written down.
 */
export function useSelection(name: string, fallback = ""): [string, (value: string) => void] {
  const [search, change] = useQuery();
  const choose = useCallback(
    (value: string) => change({ [name]: value === fallback ? null : value }),
    [change, name, fallback],
  );
  return [search.get(name) ?? fallback, choose];
}

/** As `useSelection`, for several things by their ids: a comma in an id is not one between two. */
export function useSelectedIds(name: string): [ReadonlySet<string>, (ids: Iterable<string>) => void] {
  const [text, setText] = useSelection(name);
  const ids = useMemo(() => new Set(text.split(",").filter(Boolean).map(decoded)), [text]);
  return [ids, useCallback((chosen) => setText([...chosen].map(encoded).join(",")), [setText])];
}

/** `.` and `..` would be taken as ways up, however they are written: a `~` is put before, one more if there are some. */
function encoded(part: string): string {
  return /^~*\.\.?$/.test(part) ? `~${part}` : encodeURIComponent(part);
}

function decoded(part: string): string {
  if (/^~+\.\.?$/.test(part)) return part.slice(1);
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // typed by hand: then it means itself
  }
}
