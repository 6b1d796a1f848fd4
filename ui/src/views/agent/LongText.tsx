import { useState } from "react";
import { count } from "../../parts/format";
import { visible } from "../../parts/markdown/visible";

const SHOWN = 4_000;

/** Text of a model, a tool or a person, exactly as it is. Of a long one the beginning is shown until all is wanted. */
export function LongText({ text, mono = false }: { text: string; mono?: boolean }) {
  const [isWhole, setIsWhole] = useState(false);
  const isCut = !isWhole && text.length > SHOWN;
  return (
    <div className={mono ? "agent-text mono" : "agent-text"} dir="auto">
      {visible(isCut ? text.slice(0, SHOWN) : text)}
      {isCut && (
        <button type="button" className="agent-more" onClick={() => setIsWhole(true)}>
          Show all {count(text.length)} characters
        </button>
      )}
    </div>
  );
}

/** The same, folded away. */
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
