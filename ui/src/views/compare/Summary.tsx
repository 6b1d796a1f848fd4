import type { Spent, SpentByBoth } from "../../client/client";
import type { NameOf } from "../../history/telling";
import { useFirst } from "../../parts/First";
import { count, duration, money } from "../../parts/format";
import { useTitles } from "../../state/titles";
import { type ComparedProps, kindInWords } from "./differences";

const COLUMNS: readonly (readonly [
  name: string,
  of: (spent: Spent) => number | null,
  told: (value: number) => string,
])[] = [
  ["Requests", ({ requests }) => requests, count],
  ["Tokens in", ({ inputTokens }) => inputTokens, count],
  ["Tokens out", ({ outputTokens }) => outputTokens, count],
  ["Cost", ({ costUsd }) => costUsd, money],
  ["Time", ({ seconds }) => seconds, duration],
];

/** Whether they are the same, and what it came to in each. */
export function Summary({ a, b, comparison, nameOf }: ComparedProps) {
  const titleOf = useTitles();
  const { isSame, first, sameAnswers, otherAnswers, spent, spentByAgent } = comparison;
  return (
    <section className="compare-summary" aria-label="Summary">
      <p data-same={isSame} className="compare-verdict">
        {isSame
          ? "They are the same: agents answered, called and wrote the same in both."
          : `They are not the same.${first === null ? "" : ` First of all ${nameOf(first.agentId)} ${kindInWords(first)}.`}`}{" "}
        <span className="quiet">
          {count(sameAnswers)} answers are the same, {count(otherAnswers)} are not.
        </span>
      </p>
      <div className="table-box">
        <table className="table compare-table">
          <thead>
            <tr>
              <td />
              {COLUMNS.map(([name]) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            <Used name="A" title={titleOf(a)} spent={spent.a} />
            <Used name="B" title={titleOf(b)} spent={spent.b} />
            <tr>
              <th scope="row">B − A</th>
              {COLUMNS.map(([name, of, told]) => (
                <td key={name}>{difference(of(spent.a), of(spent.b), told)}</td>
              ))}
            </tr>
          </tbody>
        </table>
      </div>
      {spentByAgent.length > 1 && <ByAgent rows={spentByAgent} nameOf={nameOf} />}
    </section>
  );
}

function Used({ name, title, spent }: { name: string; title: string; spent: Spent }) {
  return (
    <tr>
      <th scope="row" title={title}>
        {name}
      </th>
      {COLUMNS.map(([column, of, told]) => (
        <td key={column}>{shown(of(spent), told)}</td>
      ))}
    </tr>
  );
}

function ByAgent({ rows, nameOf }: { rows: readonly SpentByBoth[]; nameOf: NameOf }) {
  const { first, more } = useFirst(rows);
  return (
    <details className="compare-by-agent">
      <summary>By agent</summary>
      <div className="table-box">
        <table className="table compare-table">
          <thead>
            <tr>
              <th scope="col">Agent</th>
              {COLUMNS.map(([name]) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {first.map(({ agentId, a, b }) => (
              <tr key={agentId}>
                <th scope="row">{agentId !== null && nameOf(agentId)}</th>
                {COLUMNS.map(([name, of, told]) => (
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
