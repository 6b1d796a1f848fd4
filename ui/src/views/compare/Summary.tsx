import type { Comparison, Spent, SpentByBoth } from "../../client/client";
import { useFirst } from "../../parts/First";
import { count, duration, money } from "../../parts/format";
import { kindInWords } from "./differences";
import { useTitle } from "./title";

interface SummaryProps {
  a: string;
  b: string;
  comparison: Comparison;
}

const ROWS: readonly (readonly [name: string, of: (spent: Spent) => number | null, told: (value: number) => string])[] =
  [
    ["Requests", ({ requests }) => requests, count],
    ["Tokens in", ({ inputTokens }) => inputTokens, count],
    ["Tokens out", ({ outputTokens }) => outputTokens, count],
    ["Cost", ({ costUsd }) => costUsd, money],
    ["Time", ({ seconds }) => seconds, duration],
  ];

/** Whether they are the same, and what it came to in each. */
export function Summary({ a, b, comparison }: SummaryProps) {
  const { isSame, first, sameAnswers, otherAnswers, spent, spentByAgent } = comparison;
  const titles = [useTitle(a), useTitle(b)];
  return (
    <section className="compare-summary" aria-label="Summary">
      <p data-same={isSame} className="compare-verdict">
        {isSame
          ? "They are the same: agents answered, called and wrote the same in both."
          : `They are not the same.${first === null ? "" : ` First of all ${first.agentId} ${kindInWords(first)}.`}`}{" "}
        <span className="quiet">
          {count(sameAnswers)} answers are the same, {count(otherAnswers)} are not.
        </span>
      </p>
      <div className="table-box">
        <table className="table compare-table">
          <thead>
            <tr>
              <td />
              {["A", "B"].map((side, index) => (
                <th key={side} scope="col" title={titles[index]}>
                  {side}
                </th>
              ))}
              <th scope="col">B less A</th>
            </tr>
          </thead>
          <tbody>
            {ROWS.map(([name, of, told]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{shown(of(spent.a), told)}</td>
                <td>{shown(of(spent.b), told)}</td>
                <td>{difference(of(spent.a), of(spent.b), told)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {spentByAgent.length > 1 && <ByAgent rows={spentByAgent} />}
    </section>
  );
}

function ByAgent({ rows }: { rows: readonly SpentByBoth[] }) {
  const { first, more } = useFirst(rows);
  return (
    <details className="compare-by-agent">
      <summary>By agent</summary>
      <div className="table-box">
        <table className="table compare-table">
          <thead>
            <tr>
              <th scope="col">Agent</th>
              {ROWS.map(([name]) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {first.map(({ agentId, a, b }) => (
              <tr key={agentId}>
                <th scope="row">{agentId}</th>
                {ROWS.map(([name, of, told]) => (
                  <td key={name} data-differs={of(a) !== of(b)}>
                    {shown(of(a), told)} / {shown(of(b), told)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {more}
    </details>
  );
}

function shown(value: number | null, told: (value: number) => string): string {
  return value === null ? "–" : told(value);
}

function difference(a: number | null, b: number | null, told: (value: number) => string): string {
  if (a === null || b === null) return "–";
  if (a === b) return "0";
  return `${b > a ? "+" : "−"}${told(Math.abs(b - a))}`;
}
