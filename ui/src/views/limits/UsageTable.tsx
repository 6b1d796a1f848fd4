import { useMemo } from "react";
import { Empty, Problem } from "../../parts/Messages";
import { VirtualRows } from "../../parts/VirtualRows";
import { useSelection } from "../../shell/addresses";
import { useAnswer } from "../../state/answers";
import { useIsPast, usePage } from "../../state/page";
import { useRefreshing } from "../../state/refreshing";
import { useWorldSlowly } from "../../state/slowly";
import { rowOf, rowOfPast, rowsOf, summed, USAGE_COLUMNS, type UsageRow, usageRows } from "./usage";

const ROW = 36;
/** A large session's usage is a large answer: it is asked for less often. */
const EVERY_MS = 2000;
const AGENTS_PER_SECOND = 1000;

interface UsageTableProps {
  agentId: string;
  onAgent: (agentId: string) => void;
}

/** What each agent has used, and all together; an agent leads to its limits. */
export function UsageTable({ agentId, onAgent }: UsageTableProps) {
  const { rows, total, error, again } = useUsage();
  const [by, setBy] = useSelection("by", "inputTokens");
  const [query, setQuery] = useSelection("q");
  const shown = useMemo(() => usageRows(rows, by, query), [rows, by, query]);
  return (
    <section id="usage" className="limits-part" aria-label="Usage">
      <div className="view-head">
        <h2>Usage</h2>
        <input
          type="search"
          data-filter
          aria-label="Filter agents"
          placeholder="Filter agents ( / )"
          value={query}
          onChange={({ target }) => setQuery(target.value)}
        />
      </div>
      {error && <Problem error={error} onRetry={again} />}
      {rows.length === 0 ? (
        <Empty title="No agents, no usage.">What each agent has used is counted here, beside what it may use.</Empty>
      ) : (
        <VirtualRows
          count={shown.length}
          rowHeight={ROW}
          label="Usage by agent"
          className="limits-usage"
          head={<Head by={by} onBy={setBy} total={total} />}
          headRows={2}
          row={(index) => {
            const row = shown[index] as UsageRow;
            return (
              <Row row={row} place={index + 3} isChosen={row.agentId === agentId} isOdd={index % 2 === 1}>
                <button type="button" className="ellipsis" onClick={() => onAgent(row.agentId)} title="Its limits">
                  {row.agentId}
                </button>
              </Row>
            );
          }}
        />
      )}
    </section>
  );
}

function useUsage() {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const isPast = useIsPast();
  const agents = useWorldSlowly((world) => world.agents, 1000);
  const answer = useAnswer("usage.get", isPast ? null : { sessionId });
  useRefreshing(answer.again, EVERY_MS + (agents.size / AGENTS_PER_SECOND) * 1000);
  const { data } = answer;
  const past = useMemo(() => (isPast ? [...agents.values()].map(rowOfPast) : null), [isPast, agents]);
  const present = useMemo(() => (data ? rowsOf(data) : []), [data]);
  const rows = past ?? present;
  const total = useMemo(() => (past || !data ? summed(rows) : rowOf("", data.total)), [past, data, rows]);
  return { rows, total, error: answer.error, again: answer.again };
}

interface HeadProps {
  by: string;
  onBy: (by: string) => void;
  total: UsageRow;
}

function Head({ by, onBy, total }: HeadProps) {
  return (
    // biome-ignore-start lint/a11y/useSemanticElements: rows in sight only cannot be those of a table element
    // biome-ignore-start lint/a11y/useFocusableInteractive: the buttons in the cells have the focus
    <div role="rowgroup" className="limits-head">
      <div role="row" aria-rowindex={1} className="limits-row">
        <span role="columnheader" {...(by === "agentId" ? { "aria-sort": "ascending" } : {})}>
          <button type="button" onClick={() => onBy("agentId")}>
            Agent
          </button>
        </span>
        {USAGE_COLUMNS.map(({ key, label }) => (
          <span role="columnheader" key={key} {...(by === key ? { "aria-sort": "descending" } : {})}>
            <button type="button" onClick={() => onBy(key)}>
              {label}
              {by === key && <span aria-hidden="true"> ↓</span>}
            </button>
          </span>
        ))}
      </div>
      <Row row={total} place={2} isChosen={false} isOdd={false}>
        <b>All together</b>
      </Row>
    </div>
    // biome-ignore-end lint/a11y/useSemanticElements: as above
    // biome-ignore-end lint/a11y/useFocusableInteractive: as above
  );
}

interface RowProps {
  row: UsageRow;
  /** Its number in the whole table, the head counted. */
  place: number;
  isChosen: boolean;
  isOdd: boolean;
  children: React.ReactNode;
}

function Row({ row, place, isChosen, isOdd, children }: RowProps) {
  return (
    // biome-ignore-start lint/a11y/useSemanticElements: rows in sight only cannot be those of a table element
    // biome-ignore-start lint/a11y/useFocusableInteractive: the button in it has the focus
    <div role="row" aria-rowindex={place} className="limits-row" data-chosen={isChosen} data-odd={isOdd}>
      <span role="rowheader">{children}</span>
      {USAGE_COLUMNS.map(({ key, text }) => {
        const value = row[key];
        return (
          <span role="cell" key={key}>
            {value === null ? "–" : text(value)}
          </span>
        );
      })}
    </div>
    // biome-ignore-end lint/a11y/useSemanticElements: as above
    // biome-ignore-end lint/a11y/useFocusableInteractive: as above
  );
}
