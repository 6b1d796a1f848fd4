import { useState } from "react";
import { useActing } from "../../parts/acting";
import { Confirm } from "../../parts/Dialog";
import { duration } from "../../parts/format";
import type { Schedule } from "../../projection/world";
import { act } from "../../state/actions";

/** The times of a schedule in words. */
export function whenOf({ cron, intervalSeconds, zone }: Pick<Schedule, "cron" | "intervalSeconds" | "zone">): string {
  return cron === null ? `every ${duration(intervalSeconds ?? 0)}` : `${cron} (${zone})`;
}

/** That a schedule does not wait until its agent wakes by itself. */
export function Waking() {
  return (
    <span className="tag" title="It wakes its agent if that sleeps. Other prompts wait until it wakes.">
      wakes it
    </span>
  );
}

/** What can be done with a schedule. */
export function ScheduleActions({ schedule }: { schedule: Schedule }) {
  const { scheduleId, paused } = schedule;
  const [isAsking, setIsAsking] = useState(false);
  const acting = useActing();
  return (
    <div className="line">
      <button
        type="button"
        {...acting}
        onClick={() => void act(paused ? "schedule.resume" : "schedule.pause", { scheduleId })}
      >
        {paused ? "Resume" : "Pause"}
      </button>
      <button type="button" className="danger" {...acting} onClick={() => setIsAsking(true)}>
        Delete
      </button>
      {isAsking && (
        <Confirm
          title="Delete this schedule?"
          action="Delete"
          onConfirm={() => void act("schedule.delete", { scheduleId })}
          onClose={() => setIsAsking(false)}
        >
          {whenOf(schedule)}. It no longer fires; what it has fired already continues.
        </Confirm>
      )}
    </div>
  );
}
