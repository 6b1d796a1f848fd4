import type { Priority } from "../client/client";

const PRIORITIES: readonly Priority[] = ["urgent", "high", "normal", "low"];

/** What is taken first. */
export function PriorityField({ value, onChange }: { value: Priority; onChange: (priority: Priority) => void }) {
  return (
    <label className="field">
      Priority
      <select value={value} onChange={({ target }) => onChange(target.value as Priority)}>
        {PRIORITIES.map((priority) => (
          <option key={priority}>{priority}</option>
        ))}
      </select>
    </label>
  );
}
