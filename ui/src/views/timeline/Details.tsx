import type { ReactNode } from "react";
import { Link } from "wouter";
import { clockTime, duration, words } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import type { Drawn } from "./Canvas";
import type { Arrow, Bar, Chart } from "./chart";
import { KINDS } from "./Drawing";
import "../../parts/aside.css";

interface DetailsProps {
  chart: Chart;
  bar: Bar;
  to: Drawn["to"];
  nameOf: (agentId: string) => string;
  onChoose: (barId: string) => void;
  /** What else can be done where it began, if that was read. */
  children: ReactNode;
}

/** What a bar stands for, and where to see more of it. */
export function Details({ chart, bar, to, nameOf, onChoose, children }: DetailsProps) {
  const loop = bar.parent ?? bar.id;
  const ways = [...chart.arrows.values()];
  const causes = ways.filter((arrow) => arrow.to === loop);
  const effects = ways.filter((arrow) => arrow.from === loop);
  return (
    <aside className="aside" aria-label="Details">
      <header className="aside-head timeline-details-head">
        <h2>{new Map(KINDS).get(bar.kind)}</h2>
        <button type="button" className="icon-button" aria-label="Close the details" onClick={() => onChoose("")}>
          <Icon name="close" />
        </button>
      </header>
      <p className="aside-told" dir="auto">
        {bar.label}
      </p>
      <dl className="facts">
        <dt>Agent</dt>
        <dd>
          <Link href={to("agents", bar.agentId)}>{nameOf(bar.agentId)}</Link>
        </dd>
        {bar.taskId !== null && (
          <>
            <dt>Task</dt>
            <dd>
              <Link href={`${to("agents", bar.agentId)}?task=${encodeURIComponent(bar.taskId)}`}>{bar.taskId}</Link>
            </dd>
          </>
        )}
        <dt>From</dt>
        <dd>{bar.isCut ? "before what was read" : clockTime(bar.start)}</dd>
        <dt>To</dt>
        <dd>{bar.end === null ? "still running" : clockTime(bar.end)}</dd>
        {bar.end !== null && !bar.isCut && (
          <>
            <dt>Lasted</dt>
            <dd>{duration(bar.end - bar.start)}</dd>
          </>
        )}
        {bar.outcome !== "" && (
          <>
            <dt>Ended</dt>
            <dd>{words(bar.outcome)}</dd>
          </>
        )}
      </dl>
      <Ways title="Because of" arrows={causes} side="from" chart={chart} nameOf={nameOf} onChoose={onChoose} />
      <Ways title="Led to" arrows={effects} side="to" chart={chart} nameOf={nameOf} onChoose={onChoose} />
      {bar.seq > 0 && (
        <p className="timeline-details-ways">
          {children}
          <Link href={`${to("log")}?entry=${bar.seq}`}>In the log</Link>
        </p>
      )}
    </aside>
  );
}

interface WaysProps {
  title: string;
  arrows: readonly Arrow[];
  side: "from" | "to";
  chart: Chart;
  nameOf: (agentId: string) => string;
  onChoose: (barId: string) => void;
}

const MOST_WAYS = 20;

function Ways({ title, arrows, side, chart, nameOf, onChoose }: WaysProps) {
  if (arrows.length === 0) return null;
  return (
    <section>
      <h3>{title}</h3>
      <ul className="timeline-ways">
        {arrows.slice(0, MOST_WAYS).map((arrow) => (
          <li key={arrow.id}>
            <button type="button" className="ellipsis" title={arrow.label} onClick={() => onChoose(arrow[side])}>
              {`${arrow.kind}, ${nameOf(chart.bars.get(arrow[side])?.agentId ?? "")}${arrow.label && `: ${arrow.label}`}`}
            </button>
          </li>
        ))}
      </ul>
      {arrows.length > MOST_WAYS && <p className="quiet">and {arrows.length - MOST_WAYS} more</p>}
    </section>
  );
}
