import { useEffect, useRef } from "react";
import { useLocation, useSearchParams } from "wouter";
import { usePage } from "../state/page";
import { travelTo, useTravel } from "../state/playhead";

const WRITE_MS = 400;
/** What the address holds only while the page is in the past. */
const OF_TRAVEL = ["at", "stepby"];

/**
 * Keeps `?at=` in the address and the playhead the same: an address with another number moves the playhead, and while
 * there is one, every address that is gone to gets its number.
 */
export function useTravelAddress(): void {
  const [search, setSearch] = useSearchParams();
  const [path] = useLocation();
  const given = search.get("at");
  const isLoaded = usePage((page) => page.isLoaded);
  const isPast = usePage((page) => page.playhead !== null);
  const wanted = useTravel((travel) => travel.wanted);
  const written = useRef<string | null>(null);

  useEffect(() => {
    if (!isLoaded || given === null || given === written.current) return;
    written.current = given;
    const seq = Number(given);
    if (Number.isFinite(seq)) void travelTo(seq);
  }, [given, isLoaded]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another path has lost what was in the address
  useEffect(() => {
    if (!isPast && written.current === null) return;
    const text = isPast ? String(wanted) : null;
    if (text === given) return;
    const timer = setTimeout(
      () => {
        written.current = text;
        setSearch(
          (before) => {
            const after = new URLSearchParams(before);
            if (text === null) for (const name of OF_TRAVEL) after.delete(name);
            else after.set("at", text);
            return after;
          },
          { replace: true },
        );
      },
      isPast ? WRITE_MS : 0,
    );
    return () => clearTimeout(timer);
  }, [isPast, wanted, path, given]);
}
