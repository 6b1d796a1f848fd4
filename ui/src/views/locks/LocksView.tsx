import { useState } from "react";
import type { LockSummary } from "../../client/client";
import { AgentLink } from "../../parts/AgentLink";
import { Confirm } from "../../parts/Dialog";
import { Empty, Loaded } from "../../parts/Messages";
import { Since, Until } from "../../parts/Times";
import type { HeldLock, Wait } from "../../projection/world";
import { act } from "../../state/actions";
import { useAnswer } from "../../state/answers";
import { useIsLive, usePage, useWorld } from "../../state/page";
import { NewLock } from "./NewLock";
import { Resources } from "./Resources";
import "./locks.css";

/** What is held, by whom, and who waits for it. */
export default function LocksView() {
  const locks = useWorld((world) => world.locks);
  const waits = useWorld((world) => world.waits);
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const isLive = useIsLive();
  const [isTaking, setIsTaking] = useState(false);
  const lines = useAnswer("lock.list", isLive ? { sessionId } : null, ({ name }) => name.startsWith("lock."));
  return (
    <>
      <div className="view-head">
        <h1>Locks</h1>
        <span className="space" />
        <button type="button" className="primary" disabled={!isLive} onClick={() => setIsTaking(true)}>
          Take a lock
        </button>
      </div>
      {locks.size === 0 ? (
        <Empty title="No lock is held.">
          Agents take a lock with <code>acquire_lock</code> when they need something for longer than one call, you with
          the button above or <code>whisperer lock acquire NAME</code>. A lock that is not renewed runs out by itself.
        </Empty>
      ) : (
        <ul className="cards">
          {[...locks.values()].map((lock) => (
            <li key={lock.name}>
              <Lock lock={lock} waiting={inLine(lock.name, waits, lines.data?.locks)} />
            </li>
          ))}
        </ul>
      )}
      <h2>Resources that tools touch now</h2>
      {isLive ? (
        <Loaded answer={lines}>{() => <Resources sessionId={sessionId} />}</Loaded>
      ) : (
        <Empty title="What tools touched then is not kept." />
      )}
      {isTaking && <NewLock onClose={() => setIsTaking(false)} />}
    </>
  );
}

/** Who waits for a lock, in the order in which they get it, as far as the server has told. */
export function inLine(name: string, waits: ReadonlyMap<string, Wait>, told: LockSummary[] | undefined): Wait[] {
  const waiting = [...waits.values()].filter((wait) => wait.kind === "lock" && wait.target === name);
  const order = told?.find((lock) => lock.name === name)?.waiting.map(({ waiter }) => waiter) ?? [];
  const place = (wait: Wait) => (order.includes(wait.waiter) ? order.indexOf(wait.waiter) : order.length);
  return waiting.sort((one, other) => place(one) - place(other) || one.since - other.since);
}

function Lock({ lock, waiting }: { lock: HeldLock; waiting: Wait[] }) {
  const isLive = useIsLive();
  const [isAsking, setIsAsking] = useState(false);
  return (
    <article className="card">
      <header className="locks-head">
        <h3 className="mono">{lock.name}</h3>
        <span className="tag">token {lock.token}</span>
        <span className="space" />
        {lock.agentId === null && <OwnLock lock={lock} />}
        <button type="button" disabled={!isLive} onClick={() => setIsAsking(true)}>
          Break
        </button>
      </header>
      <p>
        held by <AgentLink agentId={lock.holder} /> for <Since at={lock.acquiredAt} />, runs out{" "}
        <Until at={lock.expiresAt} />
      </p>
      {waiting.length > 0 && (
        <ol className="locks-line" aria-label={`Who waits for ${lock.name}`}>
          {waiting.map((wait) => (
            <li key={`${wait.waiter} ${wait.taskId}`}>
              <AgentLink agentId={wait.waiter} /> waits for <Since at={wait.since} />
              {wait.deadlineAt !== null && (
                <>
                  , gives up <Until at={wait.deadlineAt} />
                </>
              )}
            </li>
          ))}
        </ol>
      )}
      {isAsking && (
        <Confirm
          title={`Break the lock ${lock.name}?`}
          action="Break"
          reasonLabel="Why (its holder is told)"
          onConfirm={(reason) => void act("lock.break", { name: lock.name, reason })}
          onClose={() => setIsAsking(false)}
        >
          {lock.holder} loses it at once, and its guarded writes are refused from then on. The first that waits has it.
        </Confirm>
      )}
    </article>
  );
}

/** What a person or a program holds can be kept for longer, or given back in order. */
function OwnLock({ lock: { name, token, acquiredAt, expiresAt } }: { lock: HeldLock }) {
  const isLive = useIsLive();
  const ttlSeconds = Math.max(60, Math.round(expiresAt - acquiredAt));
  return (
    <>
      <button type="button" disabled={!isLive} onClick={() => void act("lock.renew", { name, token, ttlSeconds })}>
        Renew
      </button>
      <button type="button" disabled={!isLive} onClick={() => void act("lock.release", { name, token })}>
        Release
      </button>
    </>
  );
}
