import { useState } from "react";
import { LongText } from "../../parts/LongText";

/** A text exactly as it is, folded away. */
export function Folded({ title, text, mono = false }: { title: string; text: string; mono?: boolean }) {
  const [isOpen, setIsOpen] = useState(false);
  if (text === "") return null;
  return (
    <details className="agent-fold" onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>{title}</summary>
      {isOpen && <LongText text={text} mono={mono} />}
    </details>
  );
}

/** JSON as people read it; text that is none stays as it is. */
export function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
