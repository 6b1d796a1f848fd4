import { useState } from "react";

const SHORT = 4_000;

/** A text of somebody else as it is, in its lines; a very long one in parts. */
export function Long({ text }: { text: string }) {
  const [isWhole, setIsWhole] = useState(false);
  const isCut = text.length > SHORT && !isWhole;
  return (
    <>
      <pre className="graph-text">{isCut ? text.slice(0, SHORT) : text}</pre>
      {isCut && (
        <button type="button" onClick={() => setIsWhole(true)}>
          Show all {text.length} characters
        </button>
      )}
    </>
  );
}
