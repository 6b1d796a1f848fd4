import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, type UIEvent, useEffect, useRef } from "react";

interface VirtualRowsProps {
  count: number;
  rowHeight: number;
  /** A row; it is given the place that it has to take. */
  row: (index: number) => ReactNode;
  label: string;
  /** Stays above the rows. */
  head?: ReactNode;
  /** How many rows that is; one unless it is said. */
  headRows?: number;
  /** Keep the last row in sight as rows are added. */
  follow?: boolean;
  /** Told that the user has scrolled away from the last row. */
  onLeaveEnd?: () => void;
  /** A row that has to be in sight. */
  shown?: number;
  /** Told which rows are in sight. */
  onRange?: (first: number, last: number) => void;
  role?: "table" | "list" | "log";
  className?: string;
}

/** Rows of one height of which only those in sight exist: a hundred thousand scroll like ten. */
export function VirtualRows(props: VirtualRowsProps) {
  const { count, rowHeight, row, label, head, follow = false, shown, onRange, role = "table", className = "" } = props;
  const box = useRef<HTMLDivElement>(null);
  const { headRows = head ? 1 : 0 } = props;
  const leaving = useLeaving(rowHeight, props.onLeaveEnd);
  const rows = useVirtualizer({
    count,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan: 6,
    initialRect: { width: 800, height: 600 },
  });
  const items = rows.getVirtualItems();
  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0];
  useEffect(() => onRange?.(first, last), [onRange, first, last]);
  useEffect(() => {
    if (follow && count > 0) rows.scrollToIndex(count - 1, { align: "end" });
  }, [follow, count, rows]);
  useEffect(() => {
    if (shown !== undefined) rows.scrollToIndex(shown, { align: "auto" });
  }, [shown, rows]);
  return (
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: each of the roles that it can have may have a label
    <div
      ref={box}
      className={`rows ${className}`}
      role={role}
      aria-label={label}
      aria-rowcount={role === "table" ? count + headRows : undefined}
      tabIndex={0}
      onScroll={leaving}
    >
      {head}
      <div
        className="rows-space"
        role={role === "table" ? "rowgroup" : "presentation"}
        style={{ height: rows.getTotalSize() }}
      >
        {items.map((item) => (
          <div
            key={item.key}
            className="rows-place"
            role="presentation"
            style={{ height: item.size, transform: `translateY(${item.start}px)` }}
          >
            {row(item.index)}
          </div>
        ))}
      </div>
    </div>
  );
}

/** Whatever follows the end only moves to it: whoever moves up from it has scrolled. */
function useLeaving(rowHeight: number, onLeaveEnd: (() => void) | undefined) {
  const lastTop = useRef(0);
  if (onLeaveEnd === undefined) return undefined;
  return ({ currentTarget: { scrollTop, scrollHeight, clientHeight } }: UIEvent) => {
    const isUp = scrollTop < lastTop.current;
    lastTop.current = scrollTop;
    if (isUp && scrollHeight - scrollTop - clientHeight > rowHeight / 2) onLeaveEnd();
  };
}
