import type { Notification } from "../client/client";
import { WORDS } from "../client/words";
import { clockTime, count, duration, money, words } from "../parts/format";

/** How an agent is called. */
export type NameOf = (agentId: string) => string;

type Filler = (params: object, name: NameOf) => string | null;

const MOST_QUOTED = 140;
const MOST_LISTED = 5;
const PART = /\[([^\]]*)\]|\{(@?)([\w.]+):?(\w*)\}/g;
const CONDITION = /^([\w.]+)([=>]?)(\w*)\?/;

const FORMS: Readonly<Record<string, (value: never) => string | null>> = {
  count,
  duration: (seconds: number) => duration(Math.abs(seconds)),
  last: (text: string) => quoted(text.trim().split("\n").at(-1) ?? "") || null,
  money,
  time: (at: number) => clockTime(at),
  words: (value: unknown) => listed(value, words),
};

const FILLERS = new Map(Object.entries(WORDS).map(([name, template]) => [name, filler(template)]));

/** What a notification says, as a short sentence without its full stop. One of an unknown kind is told by its name. */
export function telling(note: Notification, name: NameOf = (agentId) => agentId): string {
  let told: string | null | undefined;
  try {
    told = FILLERS.get(note.name)?.(note.params, name);
  } catch {
    // in an old log a field may not be what it is now
  }
  return told ?? words(note.name.replaceAll(".", " "));
}

/** The agent that a notification is about; who sent it, where it is about nobody else. */
export function agentOf(note: Notification): string | null {
  const { agentId, sender } = note.params as { agentId?: string | null; sender?: string };
  return agentId ?? sender ?? null;
}

/** What fills in a template, as in `ai_whisperer/core/telling.py`; it returns null if the template cannot be told. */
function filler(template: string): Filler {
  const parts: (string | Filler)[] = [];
  let end = 0;
  for (const { 0: all, 1: choice, 2: agent, 3: path = "", 4: form = "", index } of template.matchAll(PART)) {
    parts.push(template.slice(end, index), choice === undefined ? field(path, form, agent !== "") : chosen(choice));
    end = index + all.length;
  }
  parts.push(template.slice(end));
  return (params, name) => {
    let told = "";
    for (const part of parts) {
      const text = typeof part === "string" ? part : part(params, name);
      if (text === null) return null;
      told += text;
    }
    return told;
  };
}

function field(path: string, form: string, isAgent: boolean): Filler {
  const valueIn = lookUp(path);
  const shown = FORMS[form];
  return (params, name) => {
    const value = valueIn(params);
    if (value === null) return null;
    return shown === undefined ? listed(value, isAgent ? name : quoted) : shown(value as never);
  };
}

function chosen(choice: string): Filler {
  const choices = choice.split("|").map((each): Filler => {
    const [condition = "", path = "", relation, other] = CONDITION.exec(each) ?? [];
    const [valueIn, tell] = [lookUp(path), filler(each.slice(condition.length))];
    if (condition === "") return tell;
    if (relation === "=") return (params, name) => (String(valueIn(params)) === other ? tell(params, name) : null);
    if (relation === ">")
      return (params, name) => (Number(valueIn(params)) > Number(other) ? tell(params, name) : null);
    return (params, name) => (valueIn(params) === null ? null : tell(params, name));
  });
  return (params, name) => {
    for (const tell of choices) {
      const told = tell(params, name);
      if (told !== null) return told;
    }
    return "";
  };
}

/** What looks a field up, or one within it; it returns null for what cannot be told. */
function lookUp(path: string): (params: object) => unknown {
  const keys = path.split(".");
  return (params) => {
    let value: unknown = params;
    for (const key of keys) value = (value as Record<string, unknown> | null | undefined)?.[key];
    if (value === undefined || value === null || value === false || value === "") return null;
    return typeof value === "object" && Object.keys(value).length === 0 ? null : value;
  };
}

function listed(value: unknown, shown: (text: string) => string): string {
  if (value === null || typeof value !== "object") return shown(String(value));
  const values = (Array.isArray(value) ? value : Object.keys(value)).map((each) => shown(String(each)));
  const more = values.length - MOST_LISTED;
  return more > 0 ? `${values.slice(0, MOST_LISTED).join(", ")} and ${more} more` : values.join(", ");
}

/** The beginning of a text, in one line. */
function quoted(text: string): string {
  const line = text
    .slice(0, MOST_QUOTED * 2)
    .replace(/\s+/g, " ")
    .trim();
  return line.length > MOST_QUOTED ? `${line.slice(0, MOST_QUOTED)}…` : line;
}
