const DECIMAL_COMMA = /^[+-]?\d*,\d+$/;
const THOUSANDS = /^[+-]?[1-9]\d{0,2},\d{3}$/;

/** The number that was typed, with a decimal point or a decimal comma; NaN if it is none, or could be either. */
export function readNumber(typed: string): number {
  const plain = typed.trim();
  if (plain === "" || THOUSANDS.test(plain)) return Number.NaN;
  return Number(DECIMAL_COMMA.test(plain) ? plain.replace(",", ".") : plain);
}

export const UNITS = { seconds: 1, minutes: 60, hours: 3_600, days: 86_400 } as const;
export type TimeUnit = keyof typeof UNITS;

const DAY = 86_400;
/** What the server takes at most where a time is asked for, unless it says otherwise. */
export const LONGEST = { seconds: 100 * 365 * DAY, words: "100 years" } as const;

interface Bounds {
  /** What it is, at the beginning of a sentence. */
  readonly what: string;
  readonly unit: TimeUnit;
  readonly least?: { readonly seconds: number; readonly words: string };
  readonly most?: { readonly seconds: number; readonly words: string };
}

/** The seconds of a time that was typed in a unit, or a sentence that says what is wrong with it. */
export function readTime(typed: string, { what, unit, least, most = LONGEST }: Bounds): number | string {
  const seconds = readNumber(typed) * UNITS[unit];
  if (seconds > 0 && seconds >= (least?.seconds ?? 0) && seconds <= most.seconds) return seconds;
  const bound = least === undefined ? "above 0" : `of at least ${least.words}`;
  return `${what} must be a number of ${unit} ${bound} and at most ${most.words}.`;
}
