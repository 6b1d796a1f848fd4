import { useState } from "react";
import { count } from "./format";
import { visible } from "./markdown/visible";
import "./long-text.css";

const SHORT = 4_000;

/** A text of somebody else exactly as it is, in its lines; of a long one the beginning until all is wanted. */
export function LongText({ text }: { text: string }) {
  const [isWhole, setIsWhole] = useState(false);
  const isCut = text.length > SHORT && !isWhole;
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard */}
      <pre className="long-text" tabIndex={0} dir="auto">
        {visible(isCut ? text.slice(0, SHORT) : text)}
      </pre>
      {isCut && (
        <button type="button" className="long-text-more" onClick={() => setIsWhole(true)}>
          Show all {count(text.length)} characters
        </button>
      )}
    </>
  );
}
