import { create } from "zustand";
import { onAnotherSession } from "../state/page";
import type { Outcome } from "../steer/bulk";
import type { Action } from "../steer/lifecycle";

/** What can be opened over every view. */
export type OpenDialog =
  | { readonly kind: "palette" }
  | { readonly kind: "help" }
  | { readonly kind: "new-agent"; readonly template?: string }
  | { readonly kind: "new-group" }
  | { readonly kind: "broadcast" }
  | { readonly kind: "fork"; readonly at?: number }
  | { readonly kind: "steer"; readonly action: Action; readonly agentIds: readonly string[] }
  | { readonly kind: "outcome"; readonly outcome: Outcome };

export const useDialogs = create<{ open: OpenDialog | null }>()(() => ({ open: null }));

/** Open this; what was open is closed. */
export function openDialog(open: OpenDialog): void {
  useDialogs.setState({ open });
}

export function closeDialog(): void {
  useDialogs.setState({ open: null });
}

/** Whether the keys belong to something over the page: also to a dialog that is still being loaded. */
export function areKeysTaken(): boolean {
  if (useDialogs.getState().open !== null) return true;
  return document.querySelector("dialog[open], [popover]:popover-open") !== null;
}

onAnotherSession(closeDialog); // what it asks is about the session before
