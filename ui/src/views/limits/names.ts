import { LIMITS, MAY_BE_ZERO } from "../../client/limits";
import { bytes, duration, money } from "../../parts/format";

export type Unit = "number" | "tokens" | "money" | "seconds" | "bytes";

/** What is known of a limit; one that a newer server has is shown by its name. */
export function aboutLimit(name: string): { title: string; outcome: string } {
  const [title, outcome] = LIMITS[groupOf(name)]?.[name] ?? [name, ""];
  return { title, outcome };
}

function groupOf(name: string): string {
  return Object.keys(LIMITS).find((group) => LIMITS[group]?.[name]) ?? "Work";
}

export function unitOf(name: string): Unit {
  if (name.endsWith("_seconds")) return "seconds";
  if (name.endsWith("_bytes")) return "bytes";
  if (name.includes("cost_usd")) return "money";
  return name.includes("tokens") ? "tokens" : "number";
}

/** Whether 0 stands for "no limit". */
export function canBeEndless(name: string): boolean {
  const unit = unitOf(name);
  return unit === "tokens" || unit === "money" || name === "max_requests_per_account";
}

/** An amount of what the limit is about. */
export function amount(name: string, value: number): string {
  switch (unitOf(name)) {
    case "seconds":
      return duration(value);
    case "bytes":
      return bytes(value);
    case "money":
      return money(value);
    default:
      return value.toLocaleString("en");
  }
}

/** The value of a limit for people. */
export function limitText(name: string, value: number): string {
  return value === 0 && canBeEndless(name) ? "no limit" : amount(name, value);
}

const MOST = 1e15;
const MOST_SECONDS = 1e9;
const WHOLE: ReadonlySet<Unit> = new Set(["number", "tokens", "bytes"]);

const NUMBERS: Readonly<Record<Unit, string>> = {
  number: "a whole number, such as 10",
  tokens: "a whole number of tokens, such as 100000",
  money: "a number of US dollars, such as 2.50",
  seconds: "a number of seconds, such as 600",
  bytes: "a whole number of bytes, such as 65536",
};

/** The number that was typed, or a sentence that says what is wrong with it. */
export function readLimit(name: string, text: string): number | string {
  const { title } = aboutLimit(name);
  const unit = unitOf(name);
  const plain = text.replaceAll(/[\s,_]/g, "");
  const value = Number(plain);
  if (plain === "" || Number.isNaN(value)) return `${title} must be ${NUMBERS[unit]}.`;
  if (unit === "seconds")
    return value > 0 && value < MOST_SECONDS ? value : `${title} must be more than 0 and below 1,000,000,000 seconds.`;
  if (WHOLE.has(unit) && !Number.isInteger(value)) return `${title} must be a whole number.`;
  const least = canBeEndless(name) || MAY_BE_ZERO.includes(name) ? 0 : 1;
  if (value < least || value > MOST) return `${title} must be at least ${least} and at most 1,000,000,000,000,000.`;
  return value;
}

/** How much of a limit is used, from 0 to 1; null where that cannot be told. */
export function shareOf({ name, value, used }: { name: string; value: number; used: number | null }): number | null {
  if (used === null || (value === 0 && canBeEndless(name))) return null;
  return value === 0 ? 1 : Math.min(1, used / value);
}

/** The limits by what they are about, in a fixed order. */
export function grouped<Limit extends { name: string }>(limits: readonly Limit[]): [string, Limit[]][] {
  return Object.keys(LIMITS)
    .map((group): [string, Limit[]] => [group, limits.filter(({ name }) => groupOf(name) === group)])
    .filter(([, members]) => members.length > 0);
}
