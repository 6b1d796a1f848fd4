import type { AgentDefinition, Extent, ToolEntry, ToolKind } from "../../client/client";

export const KINDS: Readonly<Record<ToolKind, string>> = {
  coordination: "for working with other agents; every agent has them unless its tools are named",
  machine: "reach the machine or the network; they have to be named in the agent's tools",
  own: "provided by tool files or by the program that runs the server",
};

/** What an extent says of a tool's approval. */
export const APPROVAL: Readonly<Record<Extent, string>> = {
  always: "each call",
  sometimes: "some calls",
  never: "no",
};

export interface ToolGroups {
  /** The files that cannot be used, or not all of them. */
  readonly broken: readonly ToolEntry[];
  readonly usable: readonly [ToolKind, readonly ToolEntry[]][];
}

/** The tools that fit the filter by their kind, by name; those with errors apart. */
export function groupTools(tools: readonly ToolEntry[], query: string): ToolGroups {
  const wanted = query.toLowerCase();
  const found = tools.filter(({ name, description }) => `${name} ${description}`.toLowerCase().includes(wanted));
  const kinds = Object.keys(KINDS) as ToolKind[];
  return {
    broken: tools.filter(({ error }) => error !== null),
    usable: kinds
      .map((kind): [ToolKind, ToolEntry[]] => [
        kind,
        found.filter((tool) => tool.kind === kind && tool.error === null).sort((a, b) => a.name.localeCompare(b.name)),
      ])
      .filter(([, members]) => members.length > 0),
  };
}

export interface Field {
  readonly name: string;
  readonly text: string;
  /** Whether it is long and keeps its line breaks. */
  readonly isBlock: boolean;
}

/** The fields of a definition that say something, for people: the prompt last. */
export function fieldsOf(definition: AgentDefinition): Field[] {
  const { prompt, ...rest } = definition;
  const fields = Object.entries(rest).flatMap(([name, value]) => {
    const text = textOf(value);
    return text === "" ? [] : [{ name, text, isBlock: text.includes("\n") }];
  });
  if (prompt) fields.push({ name: "prompt", text: prompt, isBlock: true });
  return fields;
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value.join(", ");
  return Object.keys(value).length === 0 ? "" : JSON.stringify(value, null, 2);
}
