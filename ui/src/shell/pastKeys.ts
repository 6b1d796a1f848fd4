import { useEffect } from "react";
import { backToLive } from "../state/playhead";
import { areKeysTaken } from "./dialogState";

const OWN_KEYS = "input, select, textarea, dialog, [contenteditable]";
const PRESSED_BY_SPACE = "button, summary, [role='button']";

export interface PastKeys {
  readonly step: (direction: 1 | -1) => void;
  readonly toggle: () => void;
}

/** The keys of time travel, wherever nothing else wants them. */
export function usePastKeys({ step, toggle }: PastKeys): void {
  useEffect(() => {
    function press(event: KeyboardEvent) {
      if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
      if (areKeysTaken()) return;
      const target = event.target instanceof Element ? event.target : document.body;
      const isSlider = target.matches("input[type=range]");
      if (!isSlider && target.closest(OWN_KEYS) !== null) return;
      if (event.key === "Escape") backToLive();
      else if (event.key === " " && (isSlider || target.closest(PRESSED_BY_SPACE) === null)) toggle();
      else if (event.key === "ArrowLeft" || event.key === "ArrowRight") step(event.key === "ArrowLeft" ? -1 : 1);
      else return;
      event.preventDefault();
    }
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [step, toggle]);
}
