import { useEffect, useRef } from "react";
import { usePathname } from "wouter/use-browser-location";
import { useIsPast, usePage } from "../state/page";
import { travelTo, useTravel } from "../state/playhead";
import { usePlace, useQuery } from "./addresses";

const WRITE_MS = 400;
/** What the address holds only while the page is in the past. */
const NOT_TRAVELLING = { at: null, stepby: null };

/**
 * Keeps `?at=` in the address and the playhead the same: an address with another number moves the playhead, and while
 * there is one, every address that is gone to gets its number.
 */
export function useTravelAddress(): void {
  const [search, change] = useQuery();
  const path = usePathname();
  const given = search.get("at");
  const { sessionId } = usePlace();
  const isLoaded = usePage((page) => page.isLoaded && page.sessionId === sessionId);
  const isPast = useIsPast();
  const wanted = useTravel((travel) => travel.wanted);
  const written = useRef<string | null>(null);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the moment before was one of another session
  useEffect(() => {
    written.current = null;
  }, [sessionId]);

  useEffect(() => {
    if (!isLoaded || given === null || given === written.current) return;
    written.current = given;
    if (/^\d+$/.test(given)) void travelTo(Number(given));
    else change(NOT_TRAVELLING); // it names no moment
  }, [given, isLoaded, change]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another path has lost what was in the address
  useEffect(() => {
    if (!isLoaded || (!isPast && written.current === null)) return;
    const text = isPast ? String(wanted) : null;
    if (text === given) return;
    const timer = setTimeout(
      () => {
        written.current = text;
        change(text === null ? NOT_TRAVELLING : { at: text });
      },
      isPast ? WRITE_MS : 0,
    );
    return () => clearTimeout(timer);
  }, [isPast, wanted, path, given]);
}
