import { useCallback, useEffect, useMemo, useState } from "react";
import { usePages } from "../../history/history";
import { pageOf } from "../../history/pages";
import { matcher } from "../../history/search";
import { FirstAgent } from "../../parts/FirstAgent";
import { count } from "../../parts/format";
import { Empty } from "../../parts/Messages";
import { VirtualRows } from "../../parts/VirtualRows";
import { useSelection } from "../../shell/addresses";
import { nameIn } from "../../state/names";
import { useIsPast, usePage, useWorld } from "../../state/page";
import { Entry } from "./Entry";
import { Filters } from "./Filters";
import { HEIGHT, LogHead, LogRow } from "./LogRow";
import "./log.css";
import { useSearch } from "../../history/useSearch";
import { useLogKeys } from "./useLogKeys";

/** Browsers draw nothing that is further down than this many rows. */
const MOST_ROWS = 500_000;

/** All that happened, one row each, in words. */
export default function LogView() {
  const lastSeq = useWorld((world) => world.seq);
  const isPast = useIsPast();
  const agents = useWorld((world) => world.agents);
  const [agent] = useSelection("agent");
  const [name] = useSelection("name");
  const [text] = useSelection("text");
  const [entry, setEntry] = useSelection("entry");
  const [follow, setFollow] = useSelection("follow", "yes");
  const matches = useMemo(() => matcher({ agent, name, text }), [agent, name, text]);
  const search = useSearch(matches);
  const pages = usePages();
  const nameOf = useCallback((agentId: string) => nameIn(agents, agentId), [agents]);

  const found = useMemo(
    () => (matches === null ? null : search.notes.filter((note) => note.seq <= lastSeq)),
    [matches, search.notes, lastSeq],
  );
  const skipped = found === null ? Math.max(pages.firstSeq - 1, lastSeq - MOST_ROWS) : 0;
  const rows = found === null ? Math.max(0, lastSeq - skipped) : found.length;
  const seqOf = (index: number) => (found === null ? skipped + index + 1 : (found[index]?.seq ?? 0));
  const open = entry === "" ? null : Number(entry);
  const openIndex = open === null ? -1 : found === null ? open - skipped - 1 : found.findIndex((n) => n.seq === open);
  const [shown, setShown] = useState<number>();
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is brought in sight when it is opened, not as others come
  useEffect(() => {
    if (openIndex >= 0) setShown(openIndex);
  }, [open]);
  const choose = (seq: number | null) => setEntry(seq === null || seq === open ? "" : String(seq));

  const isConnected = usePage((page) => page.connection === "open");
  const onRange = useCallback(
    (first: number, last: number) => {
      if (found !== null || !isConnected) return;
      for (let page = pageOf(skipped + first + 1); page <= pageOf(skipped + last + 1); page += 1) {
        void pages.page(page).catch(() => {}); // rows that are not there say so, and are asked for again
      }
    },
    [found, pages, skipped, isConnected],
  );

  const isFollowing = follow === "yes" && open === null;
  const onLeaveEnd = () => setFollow("no");
  const keys = useLogKeys({
    rows,
    index: openIndex,
    onMove: (index) => setEntry(String(seqOf(index))),
    onClose: () => setEntry(""),
    isOpen: open !== null,
  });

  if (lastSeq === 0) {
    return (
      <>
        <h1>Log</h1>
        <Empty title="Nothing has happened yet.">
          <p>
            Whatever agents do is told here in order, one numbered row each: tasks, model calls, tools, mails, events.
            Create an agent and give it a task to see the first rows.
          </p>
          <FirstAgent />
        </Empty>
      </>
    );
  }
  return (
    <>
      <header className="view-head">
        <h1>Log</h1>
        <span className="quiet log-count">
          {found === null ? `${count(lastSeq - pages.firstSeq + 1)} entries` : `${count(found.length)} found`}
        </span>
        <span className="space" />
        <button
          type="button"
          aria-pressed={isFollowing}
          title={isPast ? "Keep the moment that is shown in sight." : "Keep the newest entry in sight."}
          onClick={() => {
            setEntry("");
            setFollow(isFollowing ? "no" : "yes");
          }}
        >
          {isFollowing ? "Following" : "Follow"}
        </button>
      </header>
      <Filters search={search} isFiltered={matches !== null} />
      <div className="log-body" data-open={open !== null}>
        {/* biome-ignore lint/a11y/noStaticElementInteractions: it hears what is done to the table in it */}
        <div
          className="log-list"
          onKeyDown={keys}
          onWheel={({ deltaY }) => deltaY < 0 && isFollowing && onLeaveEnd()}
          onTouchMove={() => isFollowing && onLeaveEnd()}
        >
          {rows === 0 ? (
            <Empty title={search.isBusy ? "Searching…" : "Nothing of that kind."}>
              {!search.isBusy && "Nothing in the part of the log that was searched passes the filter."}
            </Empty>
          ) : (
            <VirtualRows
              count={rows}
              rowHeight={HEIGHT}
              label="Log"
              className="log-rows"
              head={<LogHead />}
              follow={isFollowing}
              {...(isFollowing ? { onLeaveEnd } : {})}
              {...(shown === undefined ? {} : { shown })}
              onRange={onRange}
              row={(index) => (
                <LogRow
                  index={index}
                  seq={seqOf(index)}
                  note={found === null ? pages.note(skipped + index + 1) : found[index]}
                  isOpen={seqOf(index) === open}
                  nameOf={nameOf}
                  onChoose={choose}
                />
              )}
            />
          )}
        </div>
        {open !== null && <Entry seq={open} lastSeq={lastSeq} nameOf={nameOf} onClose={() => setEntry("")} />}
      </div>
    </>
  );
}
