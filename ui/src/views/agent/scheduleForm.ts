import type { MissedRuns, Params } from "../../client/client";

export const MISSED: Readonly<Record<MissedRuns, string>> = {
  skip: "none of them fires",
  once: "the last of them fires",
  all: "all of them fire",
};

/** A schedule as it is typed in. */
export interface ScheduleForm {
  readonly by: "cron" | "interval";
  readonly cron: string;
  readonly seconds: string;
  readonly zone: string;
  readonly prompt: string;
  readonly missed: MissedRuns;
}

export const NO_SCHEDULE: ScheduleForm = {
  by: "cron",
  cron: "",
  seconds: "",
  zone: Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC",
  prompt: "",
  missed: "once",
};

export type ScheduleParams = Omit<Params<"schedule.create">, "sessionId" | "agentId">;

/** What is sent of the form, or a sentence that says what is wrong with it. */
export function scheduleParams(form: ScheduleForm): ScheduleParams | string {
  const { prompt, missed } = form;
  if (prompt.trim() === "") return "Say what it is to do each time.";
  if (form.by === "interval") {
    const intervalSeconds = Number(form.seconds);
    if (!Number.isFinite(intervalSeconds) || intervalSeconds <= 0 || form.seconds.trim() === "")
      return "The time between two runs has to be a number of seconds above 0.";
    return { intervalSeconds, prompt, missed };
  }
  const fields = form.cron.trim().split(/\s+/);
  if (fields.length !== 5) return "Give five fields: minute, hour, day of month, month, day of week.";
  const zone = form.zone.trim();
  return { cron: fields.join(" "), prompt, missed, ...(zone === "" ? {} : { zone }) };
}
