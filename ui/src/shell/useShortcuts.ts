import { useEffect } from "react";
import { useLocation } from "wouter";
import { notify } from "../state/actions";
import { isLive, usePage, whyNotLive } from "../state/page";
import { useAddress } from "./addresses";
import { areKeysTaken, closeDialog, openDialog, useDialogs } from "./dialogState";
import { type Command, pressed } from "./shortcuts";

/** Listen to the keyboard for as long as a session is shown. */
export function useShortcuts(): void {
  const [, go] = useLocation();
  const address = useAddress();
  useEffect(() => {
    let pending: number | null = null;
    function onKeyDown(event: KeyboardEvent) {
      if (event.defaultPrevented) return;
      const { key, ctrlKey, metaKey, altKey, timeStamp: at } = event;
      const after = pressed(pending, { key, ctrlKey, metaKey, altKey, at, isTyping: isTyping(event.target) });
      pending = after.pending;
      if (after.command === null || !isFree(after.command)) return;
      event.preventDefault();
      if (after.command.kind === "go") go(address(after.command.path));
      else run(after.command);
    }
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, [go, address]);
}

/** While a dialog is open the keys are its own; the palette's key also closes the palette. */
function isFree(command: Command): boolean {
  const isPalette = useDialogs.getState().open?.kind === "palette";
  return document.querySelector("dialog[open]") === null || (isPalette && command.kind === "palette");
}

function isTyping(target: EventTarget | null): boolean {
  if (areKeysTaken()) return true;
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "button", "range"].includes(target.type);
  return target.isContentEditable || target.matches("textarea, select");
}

function run(command: Exclude<Command, { kind: "go" }>): void {
  if (command.kind === "filter") document.querySelector<HTMLElement>("#content [data-filter]")?.focus();
  else if (command.kind === "palette" && useDialogs.getState().open?.kind === "palette") closeDialog();
  else if (command.kind === "new-agent" && !isLive(usePage.getState())) notify(whyNotLive(), { isProblem: true });
  else openDialog({ kind: command.kind });
}
