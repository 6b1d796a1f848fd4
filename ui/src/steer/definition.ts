import type { AgentDefinition } from "../client/client";
import { commaList } from "./text";

/** What the user fills in to make an agent of an own definition. */
export interface OwnForm {
  readonly name: string;
  readonly description: string;
  readonly model: string;
  readonly prompt: string;
  /** Whether the tools are those that every agent has, or those that are named. */
  readonly isToolsChosen: boolean;
  readonly tools: ReadonlySet<string>;
  /** Further tools by name, such as those of MCP servers, with commas between them. */
  readonly otherTools: string;
}

/** What stands for the server's model. */
export const INHERIT = "inherit";

export const EMPTY_FORM: OwnForm = {
  name: "",
  description: "",
  model: "",
  prompt: "",
  isToolsChosen: false,
  tools: new Set(),
  otherTools: "",
};

const ID = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/;

/** What is wrong with an id for a new agent, as a sentence; empty if nothing is. */
export function idProblem(id: string, taken: ReadonlyMap<string, unknown>): string {
  if (id === "") return "Give the agent an id: others call it by that.";
  if (!ID.test(id))
    return "An id has up to 100 letters, digits and the signs _ . - and begins with a letter or a digit.";
  if (taken.has(id)) return `There is an agent ${id} already. Choose another id.`;
  return "";
}

/**
 * An id that is free, of a name without what ids do not have, with the first number behind it that makes it so. It is
 * empty if nothing is left of the name.
 */
export function freeId(name: string, taken: ReadonlyMap<string, unknown>): string {
  const plain = name.normalize("NFKD").replace(/\p{M}/gu, ""); // é is e with a mark
  const trimmed = plain.replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9_.-]+$/g, "");
  const base = trimmed.replace(/[^A-Za-z0-9_.-]+/g, "_").slice(0, 90);
  if (!taken.has(base)) return base;
  let number = 2;
  while (taken.has(`${base}-${number}`)) number += 1;
  return `${base}-${number}`;
}

/** The definition as templates have it: only what was filled in. */
export function ownConfig(form: OwnForm): Record<string, unknown> {
  const config: Record<string, unknown> = {};
  for (const field of ["name", "description", "prompt"] as const)
    if (form[field].trim() !== "") config[field] = form[field].trim();
  const models = commaList(form.model);
  if (models.length > 0) config.model = models.length === 1 ? models[0] : models;
  if (form.isToolsChosen) config.tools = [...new Set([...form.tools, ...commaList(form.otherTools)])];
  return config;
}

/** The form filled in with what is defined. */
export function formOf({ name, description, model, prompt, tools }: AgentDefinition): OwnForm {
  return {
    name: name ?? "",
    description: description ?? "",
    model: typeof model === "object" ? model.join(", ") : model === INHERIT ? "" : (model ?? ""),
    prompt: prompt ?? "",
    isToolsChosen: tools != null,
    tools: new Set(tools),
    otherTools: "",
  };
}

const UNSAID = { name: "", description: "", prompt: "", model: INHERIT, tools: null } as const;

/** What the form says otherwise than the definition, by field; what was taken away is as if nobody had defined it. */
export function changesOf(form: OwnForm, definition: AgentDefinition): Record<string, unknown> {
  const [after, before] = [ownConfig(form), ownConfig(formOf(definition))];
  const fields = Object.keys(UNSAID) as (keyof typeof UNSAID)[];
  const changed = fields.filter((field) => JSON.stringify(after[field]) !== JSON.stringify(before[field]));
  return Object.fromEntries(changed.map((field) => [field, after[field] ?? UNSAID[field]]));
}
