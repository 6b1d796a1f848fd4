import type { ReactNode } from "react";

interface CellProps {
  /** What its class is called after. */
  name: string;
  role?: "cell" | "rowheader" | "columnheader";
  isNumber?: boolean;
  /** Said to be nothing in particular: it is drawn quietly. */
  isNone?: boolean;
  title?: string | undefined;
  sort?: "ascending" | "descending" | undefined;
  children?: ReactNode;
}

/** A cell of the fleet. Rows of which only those in sight exist cannot be rows of a table element. */
export function Cell({ name, role = "cell", isNumber = false, isNone = false, title, sort, children }: CellProps) {
  return (
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: only heads of columns are given a sort
    <span
      role={role}
      className={isNumber ? `fleet-number fleet-${name}` : `fleet-${name}`}
      data-none={isNone}
      title={title}
      aria-sort={sort}
    >
      {children}
    </span>
  );
}
