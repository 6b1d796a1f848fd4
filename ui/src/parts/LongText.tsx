import { useState } from "react";
import { count } from "./format";
import { visible } from "./markdown/visible";
import "./long-text.css";

const SHOWN = 4_000;

/**
 * A text of a model, a tool or a person exactly as it is, in its lines; of a long one the beginning until all is wanted.
 * What is code stands in a box.
 */
export function LongText({ text, mono = false }: { text: string; mono?: boolean }) {
  const [isWhole, setIsWhole] = useState(false);
  const isCut = text.length > SHOWN && !isWhole;
  return (
    <>
      <div className={mono ? "long-text mono" : "long-text"} tabIndex={mono ? 0 : undefined} dir="auto">
        {visible(isCut ? text.slice(0, SHOWN) : text)}
      </div>
      {isCut && (
        <button type="button" className="long-text-more" onClick={() => setIsWhole(true)}>
          Show all {count(text.length)} characters
        </button>
      )}
    </>
  );
}
