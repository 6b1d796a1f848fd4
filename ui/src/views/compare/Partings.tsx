import { Link } from "wouter";
import type { Parting } from "../../client/client";
import { useFirst } from "../../parts/First";
import { LongText } from "../../parts/LongText";
import { type ComparedProps, entryAddress, kindInWords } from "./differences";

const STEP = 10;

/** Where each agent differs for the first time, with what it brought in both. */
export function Partings({ a, b, comparison: { first: earliest, partings }, nameOf }: ComparedProps) {
  const ordered = [...partings].sort((one, other) => Number(isIt(other, earliest)) - Number(isIt(one, earliest)));
  const { first, more } = useFirst(ordered, { step: STEP });
  if (partings.length === 0) return null;
  return (
    <section className="compare-partings" aria-label="First differences">
      <h2>First difference of each agent</h2>
      {first.map((parting) => (
        <article
          key={parting.agentId}
          className="card"
          aria-label={`${nameOf(parting.agentId)} ${kindInWords(parting)}`}
        >
          <h3>
            {nameOf(parting.agentId)} {kindInWords(parting)}{" "}
            {isIt(parting, earliest) && <span className="tag compare-first">first of all</span>}
          </h3>
          <p className="quiet" title="What caused the step, and its number">
            Step <code>{parting.key}</code>
          </p>
          <div className="compare-texts">
            <Text side="a" sessionId={a} seq={parting.seqA} text={parting.textA} />
            <Text side="b" sessionId={b} seq={parting.seqB} text={parting.textB} />
          </div>
          {parting.diff !== "" && (
            <details>
              <summary>Lines that differ</summary>
              <LongText text={parting.diff} mono />
            </details>
          )}
        </article>
      ))}
      {more}
    </section>
  );
}

function isIt(parting: Parting, earliest: Parting | null): boolean {
  return earliest !== null && parting.agentId === earliest.agentId && parting.key === earliest.key;
}

interface TextProps {
  side: "a" | "b";
  sessionId: string;
  seq: number | null;
  text: string;
}

function Text({ side, sessionId, seq, text }: TextProps) {
  return (
    <div className="compare-text">
      <p className="compare-text-head">
        <span className="compare-side" data-side={side}>
          {side.toUpperCase()}
        </span>
        {seq !== null && <Link href={entryAddress(sessionId, seq)}>Entry {seq}</Link>}
      </p>
      {seq === null ? <p className="quiet">There is no such step.</p> : <LongText text={text.trim() || "(no text)"} />}
    </div>
  );
}
