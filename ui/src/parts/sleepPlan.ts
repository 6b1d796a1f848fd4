/** How a sleep is asked for in a form, and what is sent of it. */
export interface SleepForm {
  readonly amount: string;
  readonly unit: keyof typeof UNITS;
  /** As a `datetime-local` field has it: in the zone of the one who reads. */
  readonly until: string;
  /** Names of events, with commas or spaces between them. */
  readonly events: string;
  readonly reason: string;
}

export interface SleepPlan {
  readonly durationSeconds: number | null;
  readonly until: number | null;
  readonly wakeEvents: string[];
  readonly reason: string;
}

export const UNITS = { seconds: 1, minutes: 60, hours: 3600, days: 86_400 } as const;

export const NO_SLEEP: SleepForm = { amount: "", unit: "minutes", until: "", events: "", reason: "" };

const LONGEST_SECONDS = 100 * 365 * 86_400;

/** What the form asks for, or a sentence that says what is wrong with it. */
export function sleepPlan(form: SleepForm, now: number): SleepPlan | string {
  const wakeEvents = [...new Set(form.events.split(/[\s,]+/).filter((name) => name !== ""))];
  const amount = form.amount.trim();
  const until = form.until.trim();
  if (amount === "" && until === "" && wakeEvents.length === 0)
    return "Give a time, a date or at least one event, or it would never wake.";
  const durationSeconds = amount === "" ? null : Number(amount) * UNITS[form.unit];
  if (durationSeconds !== null && !(durationSeconds > 0 && durationSeconds <= LONGEST_SECONDS))
    return "How long it sleeps has to be a number above 0, and at most 100 years.";
  const untilSeconds = until === "" ? null : new Date(until).getTime() / 1000;
  if (untilSeconds !== null && Number.isNaN(untilSeconds)) return "The time to wake up is not a date with a time.";
  if (untilSeconds !== null && untilSeconds <= now) return "The time to wake up has to be in the future.";
  return { durationSeconds, until: untilSeconds, wakeEvents, reason: form.reason.trim() };
}
