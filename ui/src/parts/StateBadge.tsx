import type { AgentState, TaskState } from "../client/client";
import { words } from "./format";

/** Each state has a colour, a sign and a word: none of them is needed to understand the others. */
const SIGNS: Record<AgentState | TaskState, string> = {
  active: "▶",
  idle: "○",
  paused: "❚❚",
  sleeping: "☾",
  stopped: "■",
  queued: "…",
  running: "▶",
  completed: "✓",
  continued: "↻",
  failed: "✕",
  cancelled: "⊘",
  dead: "✕",
};

export function StateBadge({ state, title }: { state: AgentState | TaskState; title?: string }) {
  return (
    <span className="state" data-state={state} title={title}>
      <span aria-hidden="true" className="state-sign">
        {SIGNS[state]}
      </span>
      {words(state)}
    </span>
  );
}
