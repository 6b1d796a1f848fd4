import { useCallback, useEffect, useState } from "react";
import { currentHistory, usePages } from "../history/history";
import { SPEEDS } from "../history/playing";
import { findNear } from "../history/search";
import { agentOf, telling } from "../history/telling";
import { clockTime } from "../parts/format";
import { Icon } from "../parts/Icon";
import { usePage } from "../state/page";
import { backToLive, play, travelTo, useTravel } from "../state/playhead";
import { useSelection } from "./addresses";
import { ForkButton } from "./ForkButton";
import { usePastKeys } from "./pastKeys";

const EXACT = new Intl.NumberFormat("en");

type StepBy = "each" | "agent" | "name";

/** Where the page stands in the past, and how to get elsewhere. */
export default function PastBar() {
  const world = usePage((page) => page.playhead?.world);
  const speed = usePage((page) => page.playhead?.speed ?? 0);
  const lastSeq = usePage((page) => page.live.seq);
  const lastAt = usePage((page) => page.live.at);
  const createdAt = usePage((page) => page.createdAt);
  const { wanted, progress, problem, leftAt } = useTravel();
  const [stepBy, setStepBy] = useSelection("stepby", "each");
  const [rate, setRate] = useState<number>(SPEEDS[1]);
  const pages = usePages();
  const note = wanted > 0 ? pages.note(wanted) : undefined;
  const step = useStep(stepBy as StepBy);
  const isPlaying = speed > 0;
  const toggle = useCallback(() => void play(isPlaying ? 0 : rate), [isPlaying, rate]);
  usePastKeys({ step, toggle });
  if (world === undefined) return null;
  const at = note?.at ?? world.at;
  const place = `${at > 0 ? clockTime(at) : "before the beginning"}, notification ${EXACT.format(wanted)} of ${EXACT.format(lastSeq)}`;
  const fresh = lastSeq - leftAt;
  return (
    <>
      <p className="past-place" role="status">
        <Icon name="history" size={15} />
        <strong>{place}</strong>
        {fresh > 0 && <span className="past-new">, {EXACT.format(fresh)} new meanwhile</span>}
      </p>
      <Ways problem={problem} progress={progress} wanted={wanted} told={note && telling(note)} />
      <div className="past-slider">
        <input
          type="range"
          aria-label="Moment"
          aria-valuetext={place}
          min={currentHistory().keyframes.first}
          max={lastSeq}
          value={wanted}
          onChange={(event) => void travelTo(Number(event.target.value))}
        />
        <p className="past-times" aria-hidden="true">
          <span>{createdAt > 0 ? clockTime(createdAt) : ""}</span>
          <span>{clockTime(lastAt)}</span>
        </p>
      </div>
      <div className="past-buttons">
        <button
          type="button"
          className="icon-button"
          aria-label="One back"
          title="One back (←)"
          onClick={() => step(-1)}
        >
          <Icon name="back" />
        </button>
        <button
          type="button"
          className="icon-button"
          aria-label={isPlaying ? "Stop playing" : "Play"}
          title={isPlaying ? "Stop playing (Space)" : "Play (Space)"}
          onClick={toggle}
        >
          <Icon name={isPlaying ? "pause" : "play"} />
        </button>
        <button
          type="button"
          className="icon-button"
          aria-label="One forward"
          title="One forward (→)"
          onClick={() => step(1)}
        >
          <Icon name="forward" />
        </button>
        <select
          aria-label="Speed"
          value={rate}
          onChange={({ target: { value } }) => {
            setRate(Number(value));
            if (isPlaying) void play(Number(value));
          }}
        >
          {SPEEDS.map((each) => (
            <option key={each} value={each}>
              {each}×
            </option>
          ))}
        </select>
        <select aria-label="Step by" value={stepBy} onChange={({ target: { value } }) => setStepBy(value)}>
          <option value="each">each</option>
          <option value="agent">same agent</option>
          <option value="name">same kind</option>
        </select>
        <ForkButton at={wanted} />
        <button type="button" className="primary" title="Back to live (Escape)" onClick={backToLive}>
          Back to live
        </button>
      </div>
    </>
  );
}

interface WaysProps {
  problem: Error | null;
  progress: number | null;
  wanted: number;
  told: string | undefined;
}

/** What happened at this moment, or how far the way to it is. */
function Ways({ problem, progress, wanted, told }: WaysProps) {
  const isSlow = useIsSlow(progress !== null);
  if (problem !== null) {
    return (
      <p className="past-told past-problem" role="alert">
        <span className="ellipsis">{problem.message}</span>
        <button type="button" onClick={() => void travelTo(wanted)}>
          Try again
        </button>
      </p>
    );
  }
  if (isSlow && progress !== null) {
    return (
      <p className="past-told">
        <progress max={1} value={progress} aria-label="Reading the log" /> Reading the log: {Math.round(progress * 100)}{" "}
        %
      </p>
    );
  }
  return <p className="past-told ellipsis">{told ?? ""}</p>;
}

/** Whether something has gone on long enough to be told of. */
function useIsSlow(isBusy: boolean): boolean {
  const [isSlow, setIsSlow] = useState(false);
  useEffect(() => {
    setIsSlow(false);
    if (!isBusy) return;
    const timer = setTimeout(() => setIsSlow(true), 250);
    return () => clearTimeout(timer);
  }, [isBusy]);
  return isSlow;
}

function useStep(by: StepBy): (direction: 1 | -1) => void {
  return useCallback(
    (direction) => {
      const { wanted } = useTravel.getState();
      const { pages } = currentHistory();
      const note = pages.note(wanted);
      if (by === "each" || note === undefined) {
        void travelTo(wanted + direction);
        return;
      }
      const agent = agentOf(note);
      const isAlike = by === "agent" ? agentOf : (each: typeof note) => each.name;
      const like = by === "agent" ? agent : note.name;
      findNear(pages, (each) => isAlike(each) === like, { from: wanted, direction }).then(
        (seq) => (seq === null ? undefined : travelTo(seq)),
        (problem) => useTravel.setState({ problem }),
      );
    },
    [by],
  );
}
