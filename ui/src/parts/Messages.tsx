import type { ReactNode } from "react";
import type { Answered } from "../state/answers";
import { count } from "./format";

/** Where there is nothing yet: what would be here, and how it comes about. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children && <div className="empty-text">{children}</div>}
    </div>
  );
}

/** What went wrong, as a sentence, with a way to try again. */
export function Problem({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  return (
    <div className="problem" role="alert">
      <p>{error.message}</p>
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** What was asked for, once it is there; until then that it is on its way, or why it does not come. */
export function Loaded<Value>({ answer, children }: { answer: Answered<Value>; children: (data: Value) => ReactNode }) {
  if (answer.data !== undefined) return <>{children(answer.data)}</>;
  if (answer.error !== null) return <Problem error={answer.error} onRetry={answer.again} />;
  return (
    <p className="loading" role="status">
      Loading…
    </p>
  );
}

/** That not all could be looked through for an earlier time. */
export function LookedThrough({ most }: { most: number | null }) {
  if (most === null) return null;
  return <p className="quiet">Only the newest {count(most)} were looked through for this time. The log has all.</p>;
}
