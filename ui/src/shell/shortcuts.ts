import { VIEWS } from "./views";

/** What a key leads to. */
export type Command =
  | { readonly kind: "go"; readonly path: string }
  | { readonly kind: "filter" }
  | { readonly kind: "help" }
  | { readonly kind: "new-agent" }
  | { readonly kind: "palette" };

/** What a key does after those before it: `pending` is the time of a `g` that waits for its letter. */
export interface Pressed {
  readonly pending: number | null;
  readonly command: Command | null;
}

export interface Key {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
  /** Whether it is pressed in a field, or while a dialog is open: then letters are letters. */
  readonly isTyping: boolean;
  readonly at: number;
}

/** How long after `g` its letter counts, in milliseconds. */
const PATIENCE = 1500;
const SINGLE: Readonly<Record<string, Command>> = {
  "/": { kind: "filter" },
  "?": { kind: "help" },
  n: { kind: "new-agent" },
};

export function pressed(pending: number | null, key: Key): Pressed {
  const nothing = { pending: null, command: null };
  const isModified = key.ctrlKey || key.metaKey;
  if (isModified && !key.altKey && key.key.toLowerCase() === "k")
    return { pending: null, command: { kind: "palette" } };
  if (isModified || key.altKey || key.isTyping) return nothing;
  if (pending !== null && key.at - pending <= PATIENCE) {
    const view = VIEWS.find((each) => each.key === key.key);
    return { pending: null, command: view ? { kind: "go", path: view.path } : null };
  }
  if (key.key === "g") return { pending: key.at, command: null };
  return { pending: null, command: SINGLE[key.key] ?? null };
}

export interface Shortcut {
  readonly keys: readonly string[];
  readonly text: string;
}

/** All that the keyboard can do, for people. */
export const SHORTCUTS: readonly { readonly title: string; readonly shortcuts: readonly Shortcut[] }[] = [
  {
    title: "Everywhere",
    shortcuts: [
      { keys: ["Ctrl", "K"], text: "Search, or do something (⌘ K on a Mac)" },
      { keys: ["/"], text: "Filter what is shown" },
      { keys: ["n"], text: "New agent" },
      { keys: ["?"], text: "Show these keys" },
      { keys: ["Esc"], text: "Close what is open" },
    ],
  },
  {
    title: "In the fleet",
    shortcuts: [
      { keys: ["↑"], text: "The agent before" },
      { keys: ["↓"], text: "The next agent" },
      { keys: ["Enter"], text: "Open the agent" },
      { keys: ["Space"], text: "Choose the agent" },
      { keys: ["Shift", "↓"], text: "Choose a range of agents" },
      { keys: ["Shift", "F10"], text: "What can be done with the agent" },
    ],
  },
  {
    title: "Go to",
    shortcuts: VIEWS.map(({ key, title }) => ({ keys: ["g", key], text: title })),
  },
];
