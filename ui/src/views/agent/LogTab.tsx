import { useMemo, useState } from "react";
import { Dialog } from "../../parts/Dialog";
import { count } from "../../parts/format";
import { LongText } from "../../parts/LongText";
import { Empty, Problem } from "../../parts/Messages";
import { VirtualRows } from "../../parts/VirtualRows";
import { useSelection } from "../../shell/addresses";
import { useHorizon } from "../../state/horizon";
import { entryKey, isShown, LEVELS, type LogEntry, useLogTail } from "./logTail";

const PAGE = 500;
const ROW_HEIGHT = 28;

/** The end of the agent's debug log; it goes on as the agent does. */
export function LogTab({ agentId }: { agentId: string }) {
  const [limit, setLimit] = useState(PAGE);
  const [text, setText] = useSelection("find");
  const [level, setLevel] = useSelection("level", "debug");
  const [opened, open] = useSelection("entry");
  const [isFollowing, setIsFollowing] = useState(true);
  const { entries, error, again } = useLogTail(agentId, limit);
  const at = useHorizon();
  const shown = useMemo(
    () => (entries ?? []).filter((entry) => isShown(entry, { at, level, text })),
    [entries, at, level, text],
  );
  const entry = opened === "" ? undefined : entries?.find((each) => entryKey(each) === opened);
  return (
    <>
      <div className="view-head">
        <input
          type="search"
          aria-label="Find in the log"
          placeholder="Find"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <label className="agent-filter">
          From{" "}
          <select value={level} onChange={(event) => setLevel(event.target.value)}>
            {LEVELS.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <label className="agent-filter">
          <input type="checkbox" checked={isFollowing} onChange={(event) => setIsFollowing(event.target.checked)} />{" "}
          Follow
        </label>
        <span className="quiet">{shown.length === 1 ? "1 entry" : `${count(shown.length)} entries`}</span>
        {entries !== null && entries.length >= limit && (
          <button type="button" onClick={() => setLimit(limit * 4)}>
            Load earlier
          </button>
        )}
      </div>
      {error !== null && <Problem error={error} onRetry={again} />}
      {entries === null && error === null && (
        <p className="loading" role="status">
          Loading…
        </p>
      )}
      {entries !== null && shown.length === 0 && (
        <Empty title={entries.length === 0 ? "Nothing was logged yet." : "No entry matches."}>
          {entries.length === 0 && "What the agent does and what happens to it is written here."}
        </Empty>
      )}
      {shown.length > 0 && (
        <VirtualRows
          className="agent-log"
          role="log"
          label="Log of the agent"
          count={shown.length}
          rowHeight={ROW_HEIGHT}
          follow={isFollowing}
          row={(index) => <LogRow entry={shown[index] as LogEntry} onOpen={open} />}
        />
      )}
      {entry !== undefined && (
        <Dialog title={String(entry.event ?? "Entry")} onClose={() => open("")} wide>
          <LongText text={JSON.stringify(entry, null, 2)} mono />
        </Dialog>
      )}
    </>
  );
}

function LogRow({ entry, onOpen }: { entry: LogEntry; onOpen: (key: string) => void }) {
  const { time, level, event, session: _session, agent: _agent, seq: _seq, cause: _cause, params, ...rest } = entry;
  const told = JSON.stringify(params ?? rest).slice(0, 300);
  return (
    <button type="button" className="agent-log-row" onClick={() => onOpen(entryKey(entry))}>
      <time className="quiet mono">{timeOf(time)}</time>
      <span className="agent-log-level" data-level={level}>
        {String(level)}
      </span>
      <span className="ellipsis">{String(event)}</span>
      <span className="agent-log-told quiet mono ellipsis">{told}</span>
    </button>
  );
}

/** The time of day to a thousandth of a second, in the zone of the one who reads. */
function timeOf(time: unknown): string {
  const date = new Date(String(time));
  if (Number.isNaN(date.getTime())) return String(time);
  return `${date.toLocaleTimeString("en-GB")}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}
