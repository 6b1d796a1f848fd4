/** A field of a form, as the schema of a question has it. The server has checked that it is one of these. */
export interface FormField {
  readonly name: string;
  readonly kind: "string" | "number" | "integer" | "boolean" | "choice" | "choices";
  readonly label: string;
  readonly hint: string;
  readonly isRequired: boolean;
  readonly options: readonly Option[];
  /** What stands in it at first. */
  readonly first: Typed;
}

export type Option = string | number | boolean;

/** What is in a field of the form: text, the places of the options that are chosen, or whether it is checked. */
export type Typed = string | readonly number[] | boolean;

export type Filled = ReadonlyMap<string, Typed>;

interface FieldSchema {
  readonly type?: string;
  readonly enum?: readonly Option[];
  readonly items?: { readonly enum?: readonly Option[] };
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
}

/** The fields of a question, in their order. */
export function fieldsOf(schema: Readonly<Record<string, unknown>>): FormField[] {
  const properties = (schema.properties ?? {}) as Readonly<Record<string, FieldSchema>>;
  const required = (schema.required ?? []) as readonly string[];
  return Object.entries(properties).map(([name, given]) => fieldOf(name, given, required.includes(name)));
}

function fieldOf(name: string, given: FieldSchema, isRequired: boolean): FormField {
  const kind = kindOf(given);
  const options = given.items?.enum ?? given.enum ?? [];
  const common = { name, kind, label: given.title ?? name, hint: given.description ?? "", isRequired, options };
  return { ...common, first: firstOf(kind, options, given.default ?? undefined) };
}

function kindOf({ type, enum: options }: FieldSchema): FormField["kind"] {
  if (type === "array") return "choices";
  if (options !== undefined) return "choice";
  return type === "number" || type === "integer" || type === "boolean" ? type : "string";
}

function firstOf(kind: FormField["kind"], options: readonly Option[], given: unknown): Typed {
  if (kind === "choices") return Array.isArray(given) ? given.map((each) => options.indexOf(each)) : [];
  if (kind === "choice") return given === undefined ? "" : String(options.indexOf(given as Option));
  if (kind === "boolean") return given === undefined ? "" : String(given);
  return given === undefined ? "" : String(given);
}

/** What stands in the form at first. */
export function emptyForm(fields: readonly FormField[]): Filled {
  return new Map(fields.map(({ name, first }) => [name, first]));
}

/** The answer that is in the form, without what was left empty. Whether it fits the server says. */
export function answerIn(fields: readonly FormField[], filled: Filled): Record<string, unknown> {
  const values = fields.map((field) => [field.name, valueIn(field, filled.get(field.name) ?? "")] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined)); // a field may be called __proto__
}

function valueIn({ kind, options, isRequired }: FormField, typed: Typed): unknown {
  if (typeof typed === "object") {
    const chosen = options.filter((_, place) => typed.includes(place));
    return chosen.length > 0 || isRequired ? chosen : undefined;
  }
  const text = String(typed);
  if (text.trim() === "") return undefined;
  if (kind === "string") return text;
  if (kind === "choice") return options[Number(text)];
  if (kind === "boolean") return text === "true";
  return Number.isNaN(Number(text)) ? text : Number(text);
}
