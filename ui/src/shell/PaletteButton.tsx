import { Icon } from "../parts/Icon";
import { openDialog } from "./dialogState";

const IS_MAC = /Mac|iPhone|iPad/.test(navigator.userAgent);

export function PaletteButton() {
  return (
    <button
      type="button"
      className="palette-button"
      aria-label="Search or do"
      aria-keyshortcuts="Control+K Meta+K"
      onClick={() => openDialog({ kind: "palette" })}
    >
      <Icon name="search" size={16} />
      <span className="palette-words">Search or do…</span>
      <kbd>{IS_MAC ? "⌘ K" : "Ctrl K"}</kbd>
    </button>
  );
}
