import { Link } from "wouter";
import type { Parting } from "../../client/client";
import type { NameOf } from "../../history/telling";
import { Problem } from "../../parts/Messages";
import { addressOf, useSelection } from "../../shell/addresses";
import { Details } from "../timeline/Details";
import { Legend, Patterns } from "../timeline/Drawing";
import { zoomed } from "../timeline/range";
import type { Read } from "../timeline/reader";
import { useTimes } from "./differences";
import type { Both, SessionLog } from "./logs";
import { Side } from "./Side";
import { useScale } from "./useScale";
import "../timeline/timeline.css";

interface TimelinesProps {
  logs: Both<SessionLog>;
  marked: readonly Parting[] | null;
  nameOf: NameOf;
}

/** Both sessions on one scale, one above the other, with the first differences marked. */
export function Timelines({ logs, marked, nameOf }: TimelinesProps) {
  const times = useTimes(logs, marked);
  const { shared, origins, charts, show, fit, end, ...scale } = useScale(logs, marked?.[0] ?? null, times);
  const [filter, setFilter] = useSelection("agent");
  const [chosen, choose] = useSelection("bar");
  const problem = charts[0].problem ?? charts[1].problem;
  const [side, barId] = sideOf(chosen);
  const bar = charts[side].chart.bars.get(barId);
  return (
    <section className="compare-timelines" aria-label="Timelines">
      <header className="view-head">
        <h2>Timelines</h2>
        <input
          type="search"
          aria-label="Agents"
          placeholder="Agents"
          className="timeline-filter"
          value={filter}
          onChange={({ target }) => setFilter(target.value)}
        />
        <label className="timeline-check">
          Lined up
          <select value={scale.isAligned ? "difference" : "start"} onChange={({ target }) => scale.align(target.value)}>
            <option value="start">at their beginnings</option>
            <option value="difference" disabled={!scale.canAlign}>
              at the first difference
            </option>
          </select>
        </label>
        <span className="space" />
        <div className="timeline-buttons">
          <button type="button" aria-label="Zoom out" onClick={() => show(zoomed(shared, 1.8))}>
            −
          </button>
          <button type="button" aria-label="Zoom in" onClick={() => show(zoomed(shared, 1 / 1.8))}>
            +
          </button>
          <button type="button" title="Show all that happened (Home)" onClick={fit}>
            Fit
          </button>
        </div>
      </header>
      <Legend note={noteOf(charts, scale.isPart)} />
      {problem !== null && <Problem error={problem} onRetry={() => charts.forEach(({ again }) => void again())} />}
      <Patterns />
      <div className="compare-body" data-open={bar !== undefined}>
        <div className="compare-sides">
          {([0, 1] as const).map((each) => (
            <Side
              key={each}
              side={each}
              log={logs[each]}
              read={charts[each]}
              shared={shared}
              origin={origins[each]}
              filter={filter}
              marked={marked}
              times={times}
              nameOf={nameOf}
              chosen={side === each ? barId : ""}
              onChoose={(id) => choose(id === "" ? "" : `${"ab"[each]}~${id}`)}
              onShow={show}
              onFit={fit}
              onEnd={end}
            />
          ))}
        </div>
        {bar && (
          <Details
            chart={charts[side].chart}
            bar={bar}
            to={(...parts) => addressOf(logs[side].sessionId, ...parts)}
            nameOf={nameOf}
            onChoose={(id) => choose(id === "" ? "" : `${"ab"[side]}~${id}`)}
          >
            <Link
              href={`${addressOf(logs[side].sessionId, "timeline")}?at=${bar.seq}&bar=${encodeURIComponent(bar.id)}`}
            >
              That session at this moment
            </Link>
          </Details>
        )}
      </div>
    </section>
  );
}

/** Which of the two a bar is of, and its id. */
function sideOf(chosen: string): readonly [0 | 1, string] {
  return [chosen.startsWith("b~") ? 1 : 0, chosen.slice(2)];
}

function noteOf(charts: Both<Read>, isPart: boolean): string {
  const isOpening = charts.some(({ covered, problem }) => covered === null && problem === null);
  const progress = charts.map((each) => each.progress).find((part) => part !== null && part > 0) ?? null;
  if (progress !== null) return `Reading the logs: ${Math.round(progress * 100)} %`;
  if (isOpening) return "Reading the logs…";
  if (charts.some(({ isShort }) => isShort))
    return "Too much for one picture: only its later part is drawn. Zoom in to see the rest.";
  const part = isPart ? "These logs are long: only what is around the first difference was read." : "";
  const cut = charts.some(({ isCut }) => isCut) ? "What happened before it began is not drawn." : "";
  return `${part} ${cut}`.trim();
}
