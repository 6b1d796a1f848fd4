import { Link } from "wouter";
import type { Comparison, Unmatched } from "../../client/client";
import { useFirst } from "../../parts/First";
import { count } from "../../parts/format";
import { entryAddress } from "./differences";

interface AloneProps {
  a: string;
  b: string;
  comparison: Comparison;
}

/** The calls and mails that only one of the two has. */
export function Alone({ a, b, comparison }: AloneProps) {
  const { callsOnlyInA, callsOnlyInB, mailsOnlyInA, mailsOnlyInB, more } = comparison;
  const lists = [
    ["Calls only in A", a, callsOnlyInA],
    ["Calls only in B", b, callsOnlyInB],
    ["Mails only in A", a, mailsOnlyInA],
    ["Mails only in B", b, mailsOnlyInB],
  ] as const;
  if (lists.every(([, , found]) => found.length === 0)) return null;
  return (
    <section className="compare-alone" aria-label="Only in one of the two">
      {lists.map(([title, sessionId, found]) => (
        <List key={title} title={title} sessionId={sessionId} found={found} />
      ))}
      {more > 0 && <p className="quiet">{count(more)} more are not listed here: only the first of each kind are.</p>}
    </section>
  );
}

function List({ title, sessionId, found }: { title: string; sessionId: string; found: readonly Unmatched[] }) {
  const { first, more } = useFirst(found, { step: 20 });
  if (found.length === 0) return null;
  return (
    <section>
      <h2>
        {title} <span className="quiet">{count(found.length)}</span>
      </h2>
      <ul>
        {first.map(({ agentId, text, seq }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: several calls of one step are told of by one entry
          <li key={`${seq} ${index}`}>
            <Link href={entryAddress(sessionId, seq)}>{agentId}</Link> {text}
          </li>
        ))}
      </ul>
      {more}
    </section>
  );
}
