import type { KeyboardEvent } from "react";

const STEPS: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 };

interface LogKeys {
  readonly rows: number;
  /** The row that is open, or -1. */
  readonly index: number;
  readonly isOpen: boolean;
  readonly onMove: (index: number) => void;
  readonly onClose: () => void;
}

/** Where a key leads from a row; null if it leads nowhere. */
export function rowAfter(key: string, index: number, rows: number): number | null {
  if (rows === 0) return null;
  if (key === "Home") return 0;
  if (key === "End") return rows - 1;
  const step = STEPS[key];
  if (step === undefined) return null;
  if (index < 0) return rows - 1;
  return Math.max(0, Math.min(rows - 1, index + step));
}

/** The arrow keys go from entry to entry, Escape closes the one that is open. */
export function useLogKeys({ rows, index, isOpen, onMove, onClose }: LogKeys) {
  return (event: KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape" && isOpen) {
      event.preventDefault();
      onClose();
      return;
    }
    const next = rowAfter(event.key, index, rows);
    if (next === null) return;
    event.preventDefault();
    onMove(next);
  };
}
