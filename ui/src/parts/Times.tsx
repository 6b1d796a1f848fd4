import { useNow } from "../state/clock";
import { usePage } from "../state/page";
import { clockTime, duration } from "./format";

/** How far the wall clock of the server is ahead of the session's. */
function useClockOffset(): number {
  return usePage((page) => (page.playhead?.world ?? page.live).clockOffsetSeconds);
}

/** What time it is on the page, by the session's clock: that of the playhead, while there is one. */
export function useShownNow(): number {
  const now = useNow();
  const offset = useClockOffset();
  const past = usePage((page) => page.playhead?.world.at);
  return past ?? now - offset;
}

/** How long ago something was. */
export function Ago({ at }: { at: number | null }) {
  const now = useShownNow();
  if (at === null || at === 0) return <span className="quiet">never</span>;
  const seconds = now - at;
  return (
    <time dateTime={new Date(at * 1000).toISOString()} title={clockTime(at)}>
      {seconds < 2 ? "now" : `${duration(Math.floor(seconds))} ago`}
    </time>
  );
}

/** How long it is until the wall clock shows that. */
export function Until({ at }: { at: number }) {
  const now = useShownNow() + useClockOffset();
  const seconds = at - now;
  return (
    <time dateTime={new Date(at * 1000).toISOString()} title={clockTime(at)}>
      {seconds < 1 ? "now" : `in ${duration(Math.floor(seconds))}`}
    </time>
  );
}

/** For how long something has been so. */
export function Since({ at }: { at: number }) {
  const now = useShownNow();
  const seconds = Math.floor(now - at);
  return <time title={clockTime(at)}>{seconds < 1 ? "0 s" : duration(seconds)}</time>;
}

/** The time of day. */
export function At({ at }: { at: number }) {
  return <time dateTime={new Date(at * 1000).toISOString()}>{clockTime(at)}</time>;
}
