// biome-ignore-all lint/a11y/useSemanticElements: rows that exist only while they are in sight cannot stand in a <table>
// biome-ignore-all lint/a11y/useFocusableInteractive: the table has the focus, its keys go from row to row
import { memo } from "react";
import type { Notification } from "../../client/client";
import { agentOf, type NameOf, telling } from "../../history/telling";
import { clockTime } from "../../parts/format";

export const HEIGHT = 30;

export function LogHead() {
  return (
    <div className="log-row log-head" role="row" aria-rowindex={1}>
      <span role="columnheader">No.</span>
      <span role="columnheader">Time</span>
      <span role="columnheader">Agent</span>
      <span role="columnheader">What happened</span>
      <span role="columnheader" className="log-name">
        Name
      </span>
    </div>
  );
}

interface LogRowProps {
  index: number;
  seq: number;
  /** Undefined while it is on its way. */
  note: Notification | undefined;
  isOpen: boolean;
  nameOf: NameOf;
  onChoose: (seq: number) => void;
}

export const LogRow = memo(
  function LogRow({ index, seq, note, isOpen, nameOf, onChoose }: LogRowProps) {
    const agent = note === undefined ? null : agentOf(note);
    return (
      // biome-ignore lint/a11y/useKeyWithClickEvents: the table's arrow keys go from row to row, and its button is a button
      <div
        className="log-row"
        role="row"
        tabIndex={-1}
        aria-rowindex={index + 2}
        aria-selected={isOpen}
        onClick={() => onChoose(seq)}
      >
        <span role="cell" className="log-number">
          {seq}
        </span>
        <span role="cell" className="log-time">
          {note === undefined ? "…" : clockTime(note.at)}
        </span>
        <span role="cell" className="ellipsis">
          {agent === null ? "" : nameOf(agent)}
        </span>
        <span role="cell" className="ellipsis log-told" dir="auto">
          {note === undefined ? "" : telling(note, nameOf)}
        </span>
        <span role="cell" className="ellipsis log-name quiet mono">
          {note?.name}
        </span>
      </div>
    );
  },
  (before, after) =>
    before.index === after.index &&
    before.seq === after.seq &&
    before.note === after.note &&
    before.isOpen === after.isOpen,
);
