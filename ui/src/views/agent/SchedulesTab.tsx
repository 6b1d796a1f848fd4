import { useMemo, useState } from "react";
import type { MissedRuns } from "../../client/client";
import { useActing } from "../../parts/acting";
import { useFirst } from "../../parts/First";
import { count } from "../../parts/format";
import { LongText } from "../../parts/LongText";
import { Empty } from "../../parts/Messages";
import { Ago, Until } from "../../parts/Times";
import type { Schedule } from "../../projection/world";
import { useAnswer } from "../../state/answers";
import { usePage, useWorld } from "../../state/page";
import { NewSchedule } from "../schedules/NewSchedule";
import { ScheduleActions, Waking, whenOf } from "../schedules/schedule";

/** What the agent is given by the clock. */
export function SchedulesTab({ agentId }: { agentId: string }) {
  const [isMaking, setIsMaking] = useState(false);
  const acting = useActing();
  const all = useWorld((world) => world.schedules);
  const schedules = useMemo(() => [...all.values()].filter((each) => each.agentId === agentId), [all, agentId]);
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const records = useAnswer("schedule.list", { sessionId, agentId }, (note) => note.name === "schedule.created").data;
  const missed = useMemo(
    () => new Map(records?.schedules.map(({ scheduleId, definition }) => [scheduleId, definition.missed])),
    [records],
  );
  const { first, more } = useFirst(schedules);
  return (
    <>
      <div className="view-head">
        <button type="button" {...acting} onClick={() => setIsMaking(true)}>
          New schedule
        </button>
      </div>
      {schedules.length === 0 && (
        <Empty title="It has no schedules.">
          A schedule gives the agent a prompt at times of day, on dates, or again and again after a time.
        </Empty>
      )}
      <ul className="agent-list">
        {first.map((schedule) => (
          <ScheduleItem key={schedule.scheduleId} schedule={schedule} missed={missed.get(schedule.scheduleId)} />
        ))}
      </ul>
      {more}
      {isMaking && <NewSchedule agentId={agentId} onClose={() => setIsMaking(false)} />}
    </>
  );
}

interface ScheduleItemProps {
  schedule: Schedule;
  missed: MissedRuns | undefined;
}

function ScheduleItem({ schedule, missed }: ScheduleItemProps) {
  const { scheduleId, paused, nextAt, lastAt, fired } = schedule;
  return (
    <li className="agent-item agent-schedule">
      <div className="agent-step-head">
        <strong>{whenOf(schedule)}</strong>
        {paused && <span className="tag agent-warn">paused</span>}
        {schedule.wake && <Waking />}
        <span className="agent-row-facts quiet">
          {nextAt !== null && !paused && (
            <span>
              next <Until at={nextAt} />
            </span>
          )}
          <span>
            last <Ago at={lastAt} />
          </span>
          <span>fired {fired === 1 ? "once" : `${count(fired)} times`}</span>
          {missed && <span>missed times: {missed}</span>}
          <code>{scheduleId}</code>
        </span>
        <span className="space" />
        <ScheduleActions schedule={schedule} />
      </div>
      {schedule.prompt !== null && <LongText text={schedule.prompt} />}
      {schedule.event !== null && (
        <p>
          broadcasts <code className="tag">{schedule.event}</code>
        </p>
      )}
    </li>
  );
}
