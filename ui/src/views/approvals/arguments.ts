/** One argument of a call as people read it. */
export interface Shown {
  readonly name: string;
  readonly value: string;
}

const LINE = 160;

/** The arguments in one line, of long ones the beginning. */
export function lineOf(text: string): string {
  const line = argumentsOf(text.length > 100_000 ? "" : text)
    ?.map(({ name, value }) => `${name}: ${value.slice(0, LINE)}`)
    .join(", ");
  return (line ?? text.slice(0, LINE)).replace(/\s+/g, " ").slice(0, LINE);
}

/** The arguments one by one, texts as texts, or null if they cannot be told apart: then only the raw ones are true. */
export function argumentsOf(text: string): Shown[] | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return null;
  return Object.entries(parsed).map(([name, value]) => ({
    name,
    value: typeof value === "string" ? value : JSON.stringify(value, null, 2),
  }));
}
