import { Link } from "wouter";
import type { Unmatched } from "../../client/client";
import type { NameOf } from "../../history/telling";
import { useFirst } from "../../parts/First";
import { count } from "../../parts/format";
import { type ComparedProps, entryAddress } from "./differences";

/** The calls and mails that only one of the two has. */
export function Alone({ a, b, comparison, nameOf }: ComparedProps) {
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
        <List key={title} title={title} sessionId={sessionId} found={found} nameOf={nameOf} />
      ))}
      {more > 0 && <p className="quiet">{count(more)} more are not listed here: only the first of each kind are.</p>}
    </section>
  );
}

interface ListProps {
  title: string;
  sessionId: string;
  found: readonly Unmatched[];
  nameOf: NameOf;
}

function List({ title, sessionId, found, nameOf }: ListProps) {
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
            <Link href={entryAddress(sessionId, seq)}>{nameOf(agentId)}</Link> {text}
          </li>
        ))}
      </ul>
      {more}
    </section>
  );
}
