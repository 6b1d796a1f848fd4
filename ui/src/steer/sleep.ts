import { commaList } from "./text";

export interface SleepForm {
  readonly amount: string;
  readonly unit: "seconds" | "minutes" | "hours" | "days";
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

const SECONDS: Record<SleepForm["unit"], number> = { seconds: 1, minutes: 60, hours: 3600, days: 86_400 };

/** How long to sleep and what for, or a sentence that says what is wrong with the form. */
export function sleepParams(form: SleepForm, now: number): SleepParams | string {
  const params: SleepParams = {};
  if (form.amount.trim() !== "") {
    const amount = Number(form.amount);
    if (!(amount > 0) || !Number.isFinite(amount)) return "How long it sleeps must be a number above 0.";
    params.durationSeconds = amount * SECONDS[form.unit];
  }
  if (form.until !== "") {
    const until = new Date(form.until).getTime() / 1000;
    if (Number.isNaN(until)) return "Until when it sleeps must be a date with a time.";
    if (until <= now) return "Until when it sleeps must be a time to come.";
    params.until = until;
  }
  const wakeEvents = commaList(form.events);
  if (wakeEvents.length > 0) params.wakeEvents = wakeEvents;
  if (Object.keys(params).length === 0)
    return "Say for how long, until when, or until which event it sleeps: otherwise it would never wake.";
  return params;
}
