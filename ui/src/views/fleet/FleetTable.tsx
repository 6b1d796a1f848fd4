import { type KeyboardEvent, useCallback, useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import { useIsNarrow } from "../../parts/narrow";
import { VirtualRows } from "../../parts/VirtualRows";
import { useAddress } from "../../shell/addresses";
import { FleetHead } from "./FleetHead";
import { FleetRow } from "./FleetRow";
import type { Sort } from "./order";
import { RowMenu, type RowMenuPlace } from "./RowMenu";
import type { WaitsByAgent } from "./standing";
import { allTicked, type Ticks, ticked } from "./ticks";

const ROW = 50;
const CARD = 88;
const PAGE = 10;

interface FleetTableProps {
  order: readonly string[];
  waits: WaitsByAgent;
  sort: Sort;
  onSort: (sort: string) => void;
  ticks: Ticks;
  onTicks: (change: (ticks: Ticks) => Ticks) => void;
}

/** The agents as rows, or as cards on a phone, of which only those in sight exist. */
export function FleetTable({ order, waits, sort, onSort, ticks, onTicks }: FleetTableProps) {
  const isNarrow = useIsNarrow();
  const [activeId, setActiveId] = useState<string | null>(null);
  const [shown, setShown] = useState<number | undefined>(undefined);
  const [menu, setMenu] = useState<RowMenuPlace | null>(null);
  const [, go] = useLocation();
  const address = useAddress();
  const box = useRef<HTMLDivElement>(null);
  const wantsFocus = useRef(false);
  const newest = useRef(order);
  newest.current = order;

  useEffect(() => {
    if (!wantsFocus.current) return;
    wantsFocus.current = false;
    box.current?.querySelector<HTMLElement>("[data-active=true]")?.focus();
  });
  const tick = useCallback(
    (id: string, isRange: boolean) => onTicks((before) => ticked(before, id, newest.current, isRange)),
    [onTicks],
  );
  const openMenu = useCallback((place: RowMenuPlace) => {
    setActiveId(place.agentId);
    setMenu(place);
  }, []);
  const closeMenu = useCallback(() => {
    setMenu(null);
    wantsFocus.current = true;
  }, []);

  function move(to: number) {
    const index = Math.max(0, Math.min(order.length - 1, to));
    setActiveId(order[index] ?? null);
    setShown(index);
    wantsFocus.current = true;
  }
  function onKeyDown(event: KeyboardEvent) {
    const row = (event.target as HTMLElement).closest<HTMLElement>("[data-agent]");
    const onRow = event.target === row;
    const here = order.indexOf(row?.dataset.agent ?? activeId ?? "");
    const steps: Record<string, number> = {
      ArrowDown: here + 1,
      ArrowUp: here - 1,
      PageDown: here + PAGE,
      PageUp: here - PAGE,
      Home: 0,
      End: order.length - 1,
    };
    const to = steps[event.key];
    const id = order[here];
    if (to !== undefined) {
      if (event.shiftKey && id !== undefined) tick(order[Math.max(0, Math.min(order.length - 1, to))] as string, true);
      move(to);
    } else if (event.key === "Enter" && onRow && id !== undefined) go(address("agents", id));
    else if (event.key === " " && onRow && id !== undefined) tick(id, event.shiftKey);
    else if ((event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) && row && id !== undefined) {
      const { left, bottom } = row.getBoundingClientRect();
      openMenu({ agentId: id, x: left + 40, y: bottom - 8 });
    } else return;
    event.preventDefault();
  }

  const first = activeId !== null && order.includes(activeId) ? activeId : order[0];
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys of the rows in it are heard here once
    <div ref={box} className="fleet-box" onKeyDown={onKeyDown}>
      <VirtualRows
        count={order.length}
        rowHeight={isNarrow ? CARD : ROW}
        key={isNarrow ? "cards" : "rows"}
        label="Agents"
        className="fleet-rows"
        {...(shown === undefined ? {} : { shown })}
        head={
          <FleetHead
            sort={sort}
            onSort={onSort}
            ticked={order.filter((id) => ticks.ids.has(id)).length}
            count={order.length}
            onTickAll={() => onTicks((before) => allTicked(before, newest.current))}
          />
        }
        row={(index) => {
          const id = order[index] as string;
          return (
            <FleetRow
              key={id}
              agentId={id}
              index={index}
              waits={waits.get(id)}
              isActive={id === first}
              isTicked={ticks.ids.has(id)}
              onTick={tick}
              onMenu={openMenu}
              onActive={setActiveId}
            />
          );
        }}
      />
      {menu && <RowMenu {...menu} onClose={closeMenu} />}
    </div>
  );
}
