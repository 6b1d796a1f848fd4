import { useEffect, useMemo, useState } from "react";
import { useActing } from "../../parts/acting";
import { Icon } from "../../parts/Icon";
import { useSelection } from "../../shell/addresses";
import { openDialog } from "../../shell/dialogState";
import { useIsPast } from "../../state/page";
import { useWorldSlowly } from "../../state/slowly";
import { BulkBar } from "./BulkBar";
import { FilterBar } from "./FilterBar";
import { FleetTable } from "./FleetTable";
import { NoAgents, NoMatches } from "./Nothing";
import { counted, FIRST_SORT, filtered, ordered, sortFrom, statesFrom } from "./order";
import { waitsByAgent } from "./standing";
import { TotalsLine } from "./TotalsLine";
import { NO_TICKS, tickedIds } from "./ticks";
import "./fleet.css";

/** All agents of the session, live, to be found, compared and steered. */
export default function FleetView() {
  const agents = useWorldSlowly((world) => world.agents);
  const tasks = useWorldSlowly((world) => world.tasks);
  const allWaits = useWorldSlowly((world) => world.waits);
  const acting = useActing("New agent (n)");
  const [query, setQuery] = useSelection("q");
  const [stateText, setStateText] = useSelection("state");
  const [sortWritten, setSort] = useSelection("sort", FIRST_SORT);
  const [ticks, setTicks] = useState(NO_TICKS);
  const waits = useMemo(() => waitsByAgent(allWaits), [allWaits]);
  const states = useMemo(() => statesFrom(stateText), [stateText]);
  const sort = useMemo(() => sortFrom(sortWritten), [sortWritten]);
  const found = useMemo(() => filtered(agents, query), [agents, query]);
  const order = useMemo(() => ordered(found, { states, sort }, { tasks, waits }), [found, states, sort, tasks, waits]);
  const chosen = useMemo(() => tickedIds(ticks, order, agents), [ticks, order, agents]);
  const isPast = useIsPast();
  useEffect(() => {
    if (isPast) setTicks(NO_TICKS);
  }, [isPast]);

  return (
    <>
      <header className="view-head">
        <h1>Fleet</h1>
        <span className="space" />
        <button
          type="button"
          className="primary fleet-new"
          {...acting}
          onClick={() => openDialog({ kind: "new-agent" })}
        >
          <Icon name="plus" size={15} /> New agent
        </button>
      </header>
      {agents.size === 0 ? (
        <NoAgents />
      ) : (
        <>
          <FilterBar
            query={query}
            onQuery={setQuery}
            states={states}
            onStates={setStateText}
            counts={counted(found)}
            sort={sort}
            onSort={setSort}
          />
          {chosen.length === 0 ? (
            <TotalsLine agents={agents} shown={order} />
          ) : (
            <BulkBar chosen={chosen} shown={order} agents={agents} onClear={() => setTicks(NO_TICKS)} />
          )}
          {order.length === 0 ? (
            <NoMatches
              onClear={() => {
                setQuery("");
                setStateText("");
              }}
            />
          ) : (
            <FleetTable order={order} waits={waits} sort={sort} onSort={setSort} ticks={ticks} onTicks={setTicks} />
          )}
        </>
      )}
    </>
  );
}
