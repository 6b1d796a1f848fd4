import { useMemo } from "react";
import { Link } from "wouter";
import type { Notification } from "../../client/client";
import { useFirst } from "../../parts/First";
import { words } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { LongText } from "../../parts/LongText";
import { Empty, Loaded, LookedThrough } from "../../parts/Messages";
import { Ago, At, Since } from "../../parts/Times";
import { WaitedFor } from "../../parts/WaitedFor";
import { USER } from "../../projection/coordination";
import { useAddress } from "../../shell/addresses";
import { changesTasks } from "../../state/changes";
import { useHorizon } from "../../state/horizon";
import { useNewest } from "../../state/newest";
import { usePage, useWorld } from "../../state/page";
import { useWorldSlowly } from "../../state/slowly";
import type { Picked } from "./choices";
import { type Passed, passed } from "./exchange";
import { counted, KIND_ICONS, KIND_WORDS } from "./kinds";
import { useName } from "./names";
import { bundled, countsOf, KINDS, pairOf } from "./scene";
import { waitLines } from "./waits";

const MANY = 200;

interface EdgePanelProps {
  readonly pair: string;
  readonly onPick: (picked: Partial<Picked>) => void;
}

/** What went from one to another. */
export function EdgePanel({ pair, onPick }: EdgePanelProps) {
  const [from = "", to = ""] = pair.split("~");
  const name = useName();
  const counts = useWorld((world) => countsOf(world.links, { from, to })).split(",");
  const back = useWorld((world) => countsOf(world.links, { from: to, to: from }));
  const used = KINDS.filter((_, index) => counts[index] !== "0");
  return (
    <>
      <h2 className="graph-panel-title">
        {name(from)} → {name(to)}
      </h2>
      <p className="quiet">{used.map((kind) => counted(kind, Number(counts[KINDS.indexOf(kind)]))).join(", ")}</p>
      <div className="graph-links">
        {[from, to].map((id) => (
          <button key={id} type="button" onClick={() => onPick({ node: id })}>
            <Icon name={id === USER ? "user" : "agent"} size={14} /> {name(id)}
          </button>
        ))}
        {/[1-9]/.test(back) && (
          <button type="button" onClick={() => onPick({ edge: pairOf({ from: to, to: from }) })}>
            <Icon name="back" size={14} /> What came back
          </button>
        )}
      </div>
      <Waits from={from} to={to} />
      <Exchange from={from} to={to} />
    </>
  );
}

function Waits({ from, to }: { from: string; to: string }) {
  const world = useWorldSlowly((world) => world);
  const lines = useMemo(() => waitLines(world), [world]);
  const waits = lines.find((line) => line.from === from && line.to === to)?.waits ?? [];
  if (waits.length === 0) return null;
  return (
    <ul className="graph-waits">
      {waits.map((wait) => (
        <li key={`${wait.kind} ${wait.target} ${wait.since}`}>
          <Icon name="schedules" size={14} /> has waited for <WaitedFor wait={wait} /> for <Since at={wait.since} />
          {wait.deadlineAt !== null && (
            <>
              , until <At at={wait.deadlineAt} />
            </>
          )}
        </li>
      ))}
    </ul>
  );
}

function Exchange({ from, to }: { from: string; to: string }) {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const until = useHorizon();
  const world = useWorldSlowly((world) => world);
  const kinds = useMemo(() => {
    const both = bundled(world.links.values()).find((bundle) => bundle.from === from && bundle.to === to);
    return new Set(both?.kinds);
  }, [world.links, from, to]);
  const concerns = (note: Notification) =>
    (note.name === "mail.sent" && [from, to].includes(note.params.recipient)) ||
    (note.name === "mail.state_changed" && [from, to].includes(note.params.agentId));
  const bounds = { wanted: MANY, refreshOn: concerns };
  const mails = useNewest("mail.list", { sessionId, owner: to }, bounds);
  const replies = useNewest("mail.list", { sessionId, owner: from }, bounds);
  const wantsTasks = kinds.has("delegation") && to !== USER;
  const tasks = useNewest("task.list", wantsTasks ? { sessionId, agentId: to } : null, {
    wanted: MANY,
    refreshOn: (note) => changesTasks(note, to),
  });
  const events = useNewest("async.listEvents", kinds.has("event") ? { sessionId } : null, {
    wanted: MANY,
    refreshOn: (note) => note.name === "event.broadcast",
  });
  const most = Math.max(0, ...[mails, replies, tasks, events].map(({ lookedThrough }) => lookedThrough ?? 0));
  const isLooking = [mails, tasks, events].some(({ isLoading }) => isLoading);
  const entries = useMemo(
    () =>
      passed({
        from,
        to,
        until,
        mails: mails.data?.mails ?? [],
        replies: replies.data?.mails ?? [],
        tasks: tasks.data?.tasks ?? [],
        events: events.data?.events ?? [],
      }),
    [from, to, until, mails.data, replies.data, tasks.data, events.data],
  );
  const { first, more } = useFirst(entries);
  return (
    <Loaded answer={mails}>
      {() =>
        entries.length === 0 && isLooking ? (
          <p className="loading">Loading…</p>
        ) : entries.length === 0 ? (
          <Empty title="Nothing to show">
            What one mails, asks or hands over to the other is listed here, with the answer.
          </Empty>
        ) : (
          <>
            <ul className="graph-passed">
              {first.map((entry) => (
                <Entry
                  key={`${entry.kind} ${entry.id}`}
                  entry={entry}
                  to={to}
                  isPast={until < Number.POSITIVE_INFINITY}
                />
              ))}
            </ul>
            {more}
            <LookedThrough most={most === 0 ? null : most} />
          </>
        )
      }
    </Loaded>
  );
}

function Entry({ entry, to, isPast }: { entry: Passed; to: string; isPast: boolean }) {
  const address = useAddress();
  const { kind, title, text, reply, state, at, taskId } = entry;
  return (
    <li>
      <details className="graph-entry">
        <summary>
          <span className="graph-entry-kind" data-kind={kind} title={KIND_WORDS[kind].one}>
            <Icon name={KIND_ICONS[kind]} size={14} />
            <span className="visually-hidden">{KIND_WORDS[kind].one}</span>
          </span>
          <span className="ellipsis">{title || "(no subject)"}</span>
          {!isPast && <span className="tag">{words(state)}</span>}
          <span className="quiet graph-entry-time">
            <Ago at={at} />
          </span>
        </summary>
        <LongText text={text} />
        {reply !== null && (
          <>
            <h3>Reply</h3>
            <LongText text={reply} />
          </>
        )}
        {taskId !== null && to !== USER && (
          <Link href={`${address("agents", to)}?task=${encodeURIComponent(taskId)}`}>What it did about it</Link>
        )}
      </details>
    </li>
  );
}
