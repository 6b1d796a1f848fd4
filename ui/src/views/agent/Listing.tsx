import type { ReactNode } from "react";
import { LookedThrough } from "../../parts/Messages";
import type { Newest } from "../../state/newest";

interface StateFilterProps {
  states: readonly string[];
  value: string;
  onChange: (state: string) => void;
}

/** Which of a list are shown, by their state. */
export function StateFilter({ states, value, onChange }: StateFilterProps) {
  return (
    <label className="agent-filter">
      State{" "}
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">all</option>
        {states.map((state) => (
          <option key={state}>{state}</option>
        ))}
      </select>
    </label>
  );
}

interface ItemProps {
  isOpen: boolean;
  onToggle: () => void;
  /** What tells it from the others, on one line. */
  line: ReactNode;
  /** What is below the line. */
  children?: ReactNode;
}

/** One of a list, to be opened. */
export function Item({ isOpen, onToggle, line, children }: ItemProps) {
  return (
    <li className="agent-item" data-open={isOpen}>
      <button type="button" className="agent-row" aria-expanded={isOpen} onClick={onToggle}>
        {line}
      </button>
      {children}
    </li>
  );
}

interface OlderProps {
  newest: Newest<unknown>;
  what: string;
  onMore: () => void;
}

/** What follows the newest of something: how far was looked, and the way to those before. */
export function Older({ newest, what, onMore }: OlderProps) {
  return (
    <>
      <LookedThrough most={newest.lookedThrough} />
      {newest.hasOlder && (
        <button type="button" className="agent-older" onClick={onMore}>
          Show older {what}
        </button>
      )}
    </>
  );
}
