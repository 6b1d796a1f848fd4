import { lazy, Suspense } from "react";
import { Icon } from "../parts/Icon";
import { useIsPast, usePage } from "../state/page";
import { backToLive, travelTo } from "../state/playhead";
import { useTravelAddress } from "./travel";
import "./past.css";

const PastBar = lazy(() => import("./PastBar"));

/** The way into the past. */
export function TravelButton() {
  const isPast = useIsPast();
  const canTravel = usePage((page) => page.isLoaded && page.live.seq > 0);
  const label = isPast ? "Back to live" : "Travel in time";
  return (
    <button
      type="button"
      className="icon-button"
      aria-label={label}
      aria-pressed={isPast}
      title={canTravel ? label : "Nothing has happened in this session yet."}
      disabled={!canTravel}
      onClick={() => (isPast ? backToLive() : void travelTo(usePage.getState().live.seq))}
    >
      <Icon name="history" />
    </button>
  );
}

/** The bar over the page while it shows the past. */
export function Past() {
  useTravelAddress();
  const isPast = useIsPast();
  if (!isPast) return null;
  return (
    <section className="past" aria-label="Time travel">
      <Suspense fallback={<p className="quiet">Loading…</p>}>
        <PastBar />
      </Suspense>
    </section>
  );
}
