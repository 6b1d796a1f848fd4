import type { ReactNode } from "react";

/** A name and what is to be said under it, in a list of such (`<dl>`). */
export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
