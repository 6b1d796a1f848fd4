import { useMemo, useRef, useState } from "react";
import { AgentLink } from "../../parts/AgentLink";
import { useFirst } from "../../parts/First";
import { count } from "../../parts/format";
import { Empty } from "../../parts/Messages";
import { useSettling } from "../../parts/settling";
import { Ago, Until } from "../../parts/Times";
import { ViewHead } from "../../parts/ViewHead";
import type { Schedule } from "../../projection/world";
import { usePlace } from "../../shell/addresses";
import { useWorld } from "../../state/page";
import { NewSchedule } from "./NewSchedule";
import { ScheduleActions, Waking, whenOf } from "./schedule";
import "./schedules.css";

/** What is to be done at which times, and what was. */
export default function SchedulesView() {
  const schedules = useWorld((world) => world.schedules);
  const { item: marked } = usePlace();
  const [isMaking, setIsMaking] = useState(false);
  const all = useMemo(() => [...schedules.values()], [schedules]);
  const including = useMemo(() => all.findIndex(({ scheduleId }) => scheduleId === marked), [all, marked]);
  const { first, more } = useFirst(all, { including });
  const rows = useRef<HTMLTableSectionElement>(null);
  useSettling(rows);
  return (
    <>
      <ViewHead title="Schedules" action="New schedule" onAct={() => setIsMaking(true)} />
      {schedules.size === 0 ? (
        <Empty title="No schedules yet.">
          A schedule gives an agent a prompt, or broadcasts an event, by a cron line or every so often: over restarts
          and clock changes, once for each due time. Make one here, or write <code>schedule:</code> into a template.
        </Empty>
      ) : (
        <div className="table-box">
          <table className="table schedules">
            <thead>
              <tr>
                <th scope="col">When</th>
                <th scope="col">What</th>
                <th scope="col">Next</th>
                <th scope="col">Last</th>
                <th scope="col">Fired</th>
                <th scope="col">Actions</th>
              </tr>
            </thead>
            <tbody ref={rows}>
              {first.map((schedule) => (
                <Row key={schedule.scheduleId} schedule={schedule} isMarked={schedule.scheduleId === marked} />
              ))}
            </tbody>
          </table>
          {more}
        </div>
      )}
      {isMaking && <NewSchedule onClose={() => setIsMaking(false)} />}
    </>
  );
}

function Row({ schedule, isMarked }: { schedule: Schedule; isMarked: boolean }) {
  const { scheduleId, agentId, prompt, event, wake, paused, nextAt, lastAt, fired } = schedule;
  return (
    <tr data-marked={isMarked} data-paused={paused}>
      <td data-label="When">
        {whenOf(schedule)} {paused && <span className="tag">paused</span>}
        <div className="quiet mono">{scheduleId}</div>
      </td>
      <td className="schedules-what" data-label="What">
        {agentId !== null && <AgentLink agentId={agentId} />} {wake && <Waking />}
        {prompt !== null && <Prompt text={prompt} />}
        {event !== null && (
          <p>
            event <code>{event}</code>
          </p>
        )}
      </td>
      <td data-label="Next">
        {nextAt === null || paused ? <span className="quiet">not planned</span> : <Until at={nextAt} />}
      </td>
      <td data-label="Last">
        <Ago at={lastAt} />
      </td>
      <td data-label="Fired">{count(fired)}</td>
      <td>
        <ScheduleActions schedule={schedule} />
      </td>
    </tr>
  );
}

const SHORT = 140;

/** Two lines of a prompt, and the whole if it is wanted. */
function Prompt({ text }: { text: string }) {
  const [isWhole, setIsWhole] = useState(false);
  if (text.length <= SHORT && text.split("\n").length <= 2) return <p className="schedules-whole">{text}</p>;
  return (
    <>
      <p className={isWhole ? "schedules-whole" : "schedules-prompt"}>{text}</p>
      <button type="button" className="schedules-more" aria-expanded={isWhole} onClick={() => setIsWhole(!isWhole)}>
        {isWhole ? "Show less" : "Show all"}
      </button>
    </>
  );
}
