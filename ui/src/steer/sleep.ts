import { LONGEST, readTime, type TimeUnit } from "../parts/numbers";
import { commaList } from "./text";

export interface SleepForm {
  readonly amount: string;
  readonly unit: TimeUnit;
  /** As a field for date and time writes it, in the time zone of the browser. */
  readonly until: string;
  /** Names of events, with commas between them. */
  readonly events: string;
}

export interface SleepParams {
  durationSeconds?: number;
  until?: number;
  wakeEvents?: string[];
}

/** How long to sleep and what for, or a sentence that says what is wrong with the form. */
export function sleepParams(form: SleepForm, now: number): SleepParams | string {
  const params: SleepParams = {};
  if (form.amount.trim() !== "") {
    const seconds = readTime(form.amount, { what: "How long it sleeps", unit: form.unit });
    if (typeof seconds === "string") return seconds;
    params.durationSeconds = seconds;
  }
  if (form.until !== "") {
    const until = new Date(form.until).getTime() / 1000;
    if (Number.isNaN(until)) return "Until when it sleeps must be a date with a time.";
    if (until <= now) return "Until when it sleeps must be a time in the future.";
    if (until - now > LONGEST.seconds) return `Until when it sleeps must be a time within ${LONGEST.words}.`;
    params.until = until;
  }
  const wakeEvents = commaList(form.events);
  if (wakeEvents.length > 0) params.wakeEvents = wakeEvents;
  if (Object.keys(params).length === 0)
    return "Say for how long, until when, or until which event it sleeps: otherwise it would never wake.";
  return params;
}
