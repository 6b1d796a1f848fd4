import { useCallback, useEffect, useMemo, useRef } from "react";
import { currentHistory } from "../../history/history";
import { FirstAgent } from "../../parts/FirstAgent";
import { Icon } from "../../parts/Icon";
import { Empty, Problem } from "../../parts/Messages";
import type { World } from "../../projection/world";
import { useAddress, useSelection } from "../../shell/addresses";
import { ForkButton } from "../../shell/ForkButton";
import { useNow } from "../../state/clock";
import { nameIn } from "../../state/names";
import { listen, usePage } from "../../state/page";
import { travelTo } from "../../state/playhead";
import { Canvas } from "./Canvas";
import type { Chart } from "./chart";
import { Details } from "./Details";
import { Legend, Patterns } from "./Drawing";
import { type Range, zoomed } from "./range";
import { lanesOf, workOf } from "./shapes";
import "./timeline.css";
import { type Drawable, useChart } from "./useChart";
import { useRange, whole } from "./useRange";

const LABEL =
  "Timeline. Arrow keys move it, plus and minus zoom, Home shows all, End follows; comma and full stop go from bar to bar.";

/** What each agent did when, and what led to what. */
export default function TimelineView() {
  const isEmpty = usePage((page) => page.live.agents.size === 0);
  if (isEmpty) {
    return (
      <>
        <h1>Timeline</h1>
        <Empty title="Nothing has happened yet.">
          <p>
            Each agent has a lane here: its tasks, and in them its model calls, tool calls and waits, with arrows from
            what caused them. Give an agent a task to see the first bar.
          </p>
          <FirstAgent />
        </Empty>
      </>
    );
  }
  return <Timeline />;
}

function Timeline() {
  const ranging = useRange();
  const { range, isFollowing, show, follow, suggest } = ranging;
  const { chart, covered, isShort, progress, problem, again } = useChart(useLog(), range);
  const agents = useAgents();
  const [filter, setFilter] = useSelection("agent");
  const [quiet, setQuiet] = useSelection("quiet", "no");
  const [chosen, choose] = useSelection("bar");
  const lanes = useMemo(
    () => lanesOf(chart, agents, { filter, withQuiet: quiet === "yes" }),
    [chart, agents, filter, quiet],
  );
  const isRead = covered === range;
  const isOpening = covered === null && problem === null;
  useEffect(() => {
    const work = isRead ? workOf(chart) : null;
    if (work !== null) suggest(work);
  }, [isRead, chart, suggest]);
  const fit = useFit(chart, isRead, show);
  const bar = chart.bars.get(chosen);
  const nameOf = useCallback((agentId: string) => nameIn(agents, agentId), [agents]);
  const now = Math.max(useNow(), chart.at, isFollowing ? Date.now() / 1000 : 0);
  const moment = usePage((page) => page.playhead?.world.at ?? null);
  const scrub = useScrub();
  const to = useAddress();
  const drawn = { chart, lanes, now, moment, to, label: LABEL };
  return (
    <>
      <header className="view-head">
        <h1>Timeline</h1>
        <input
          type="search"
          aria-label="Agents"
          placeholder="Agents"
          className="timeline-filter"
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
        />
        <label className="timeline-check">
          <input
            type="checkbox"
            checked={quiet === "yes"}
            onChange={(event) => setQuiet(event.target.checked ? "yes" : "no")}
          />
          Quiet agents too
        </label>
        <span className="space" />
        <div className="timeline-buttons">
          <button type="button" aria-label="Zoom out" onClick={() => show(zoomed(range, 1.8), "following")}>
            −
          </button>
          <button type="button" aria-label="Zoom in" onClick={() => show(zoomed(range, 1 / 1.8), "following")}>
            +
          </button>
          <button type="button" title="Show all that happened (Home)" onClick={fit}>
            Fit
          </button>
          <button type="button" aria-pressed={isFollowing} title="Keep the present in sight (End)" onClick={follow}>
            {isFollowing ? "Following" : "Follow"}
          </button>
        </div>
      </header>
      <Legend note={noteOf(progress, { isShort, isOpening, isQuiet: isRead && lanes.length === 0 })} />
      {problem !== null && <Problem error={problem} onRetry={again} />}
      <div className="timeline-body" data-open={bar !== undefined}>
        <Patterns />
        <Canvas drawn={drawn} ranging={ranging} onFit={fit} chosen={chosen} onChoose={choose} onMoment={scrub} />
        {bar && (
          <Details chart={chart} bar={bar} to={to} nameOf={nameOf} onChoose={choose}>
            <button type="button" onClick={() => void travelTo(bar.seq)}>
              <Icon name="history" size={15} /> Show the page at this moment
            </button>
            <ForkButton at={bar.seq} />
          </Details>
        )}
      </div>
    </>
  );
}

/** The log of the session that is shown. */
function useLog(): Drawable {
  const sessionId = usePage((page) => page.sessionId);
  const createdAt = usePage((page) => page.createdAt);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another session has another log
  return useMemo(() => ({ history: currentHistory(), onGrown: listen }), [sessionId, createdAt]);
}

/** Moves the playhead to a time; while the way there is looked up, only the newest wish counts. */
function useScrub(): (time: number) => void {
  const wanted = useRef(0);
  return useCallback((time) => {
    wanted.current = time;
    currentHistory()
      .pages.seqAt(time)
      .then(
        (seq) => (wanted.current === time ? travelTo(seq) : undefined),
        () => undefined, // the bar over the page tells of a lost connection
      );
  }, []);
}

/** All agents. What they do changes all the time, but here only who there is matters. */
function useAgents(): World["agents"] {
  const size = usePage((page) => page.live.agents.size);
  const sessionId = usePage((page) => page.sessionId);
  // biome-ignore lint/correctness/useExhaustiveDependencies: who there is changes with these
  return useMemo(() => usePage.getState().live.agents, [size, sessionId]);
}

/** Shows the whole session, and when that was read, the time in it in which agents worked. */
function useFit(chart: Chart, isRead: boolean, show: (range: Range) => void): () => void {
  const isWaiting = useRef(false);
  useEffect(() => {
    const work = isWaiting.current && isRead ? workOf(chart) : null;
    if (work === null) return;
    isWaiting.current = false;
    show(work);
  }, [chart, isRead, show]);
  return useCallback(() => {
    isWaiting.current = true;
    show(whole());
  }, [show]);
}

type Facts = Readonly<Record<"isShort" | "isOpening" | "isQuiet", boolean>>;

function noteOf(progress: number | null, { isShort, isOpening, isQuiet }: Facts): string {
  if (progress !== null) return `Reading the log: ${Math.round(progress * 100)} %`;
  if (isOpening) return "Reading the log…";
  if (isQuiet) return "No agent to be shown worked in this time. Give one a task, or show quiet agents too.";
  return isShort ? "Too much for one picture: only its later part is drawn. Zoom in to see the rest." : "";
}
