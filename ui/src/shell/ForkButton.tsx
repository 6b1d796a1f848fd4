import { useReaching } from "../parts/acting";
import { Icon } from "../parts/Icon";
import { openDialog } from "./dialogState";

/** Asks how another session is to go on from an entry of the log. */
export function ForkButton({ at }: { at: number }) {
  const reaching = useReaching("Another session that continues from this moment");
  return (
    <button
      type="button"
      className="fork-button"
      aria-label="Fork from here"
      {...reaching}
      onClick={() => openDialog({ kind: "fork", at })}
    >
      <Icon name="fork" size={15} /> <span>Fork from here</span>
    </button>
  );
}
