/** How quantities are written, everywhere on the page. */

const NUMBER = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export function count(value: number): string {
  return value < 10_000 ? NUMBER.format(value) : COMPACT.format(value);
}

/** Money; a dash where no price is known. */
export function money(usd: number | null): string {
  if (usd === null) return "–";
  return `$${usd.toFixed(usd !== 0 && usd < 1 ? 4 : 2)}`;
}

export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB"];
  const power = value < 1 ? 0 : Math.min(Math.floor(Math.log2(value) / 10), units.length - 1);
  return `${NUMBER.format(value / 1024 ** power)} ${units[power]}`;
}

/** A length of time in its two largest units. */
export function duration(seconds: number): string {
  if (seconds < 1) return `${Math.max(0, Math.round(seconds * 1000))} ms`;
  if (seconds < 60) return `${NUMBER.format(seconds)} s`;
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
  ];
  if (days > 0) return hours > 0 ? `${days} d ${hours} h` : `${days} d`;
  if (hours > 0) return minutes > 0 ? `${hours} h ${minutes} min` : `${hours} h`;
  const rest = Math.floor(seconds % 60);
  return rest > 0 ? `${minutes} min ${rest} s` : `${minutes} min`;
}

/** The time of day; with the date if it is another day than `now`. */
export function clockTime(at: number, now = Date.now() / 1000): string {
  const date = new Date(at * 1000);
  const time = date.toLocaleTimeString("en-GB");
  const isToday = date.toDateString() === new Date(now * 1000).toDateString();
  return isToday ? time : `${date.toLocaleDateString("en-CA")} ${time}`;
}

/** A name of the code as words: `user_prompt` is "user prompt". */
export function words(name: string): string {
  return name.replaceAll("_", " ");
}
