import { Icon } from "../parts/Icon";
import { openDialog } from "./dialogState";

const KEYS = /Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘ K" : "Ctrl K";

export function PaletteButton() {
  return (
    <button
      type="button"
      className="palette-button"
      aria-keyshortcuts="Control+K Meta+K"
      onClick={() => openDialog({ kind: "palette" })}
    >
      <Icon name="search" size={16} />
      <span className="palette-words">Search or do…</span>
      <kbd>{KEYS}</kbd>
    </button>
  );
}
