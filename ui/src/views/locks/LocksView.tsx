import { useEffect, useMemo, useRef, useState } from "react";
import { AgentLink } from "../../parts/AgentLink";
import { useActing } from "../../parts/acting";
import { Confirm } from "../../parts/Dialog";
import { useFirst } from "../../parts/First";
import { Empty } from "../../parts/Messages";
import { useSettling } from "../../parts/settling";
import { Since, Until } from "../../parts/Times";
import { ViewHead } from "../../parts/ViewHead";
import type { HeldLock, Wait } from "../../projection/world";
import { usePlace } from "../../shell/addresses";
import { act } from "../../state/actions";
import { useIsPast, usePage, useWorld } from "../../state/page";
import { NewLock } from "./NewLock";
import { Resources } from "./Resources";
import "./locks.css";

/** What is held, by whom, and who waits for it. */
export default function LocksView() {
  const locks = useWorld((world) => world.locks);
  const { item: marked } = usePlace();
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const isPast = useIsPast();
  const [isTaking, setIsTaking] = useState(false);
  const all = useMemo(() => [...locks.values()], [locks]);
  const including = useMemo(() => all.findIndex(({ name }) => name === marked), [all, marked]);
  const { first, more } = useFirst(all, { including });
  const list = useRef<HTMLUListElement>(null);
  useSettling(list);
  return (
    <>
      <ViewHead title="Locks" action="Take a lock" onAct={() => setIsTaking(true)} />
      {locks.size === 0 ? (
        <Empty title="No lock is held.">
          Agents take a lock with <code>acquire_lock</code> when they need something for longer than one call, you with
          the button above or <code>whisperer lock acquire NAME</code>. A lock that is not renewed runs out by itself.
        </Empty>
      ) : (
        <>
          <ul ref={list} className="cards">
            {first.map((lock) => (
              <li key={lock.name}>
                <Lock lock={lock} isMarked={lock.name === marked} />
              </li>
            ))}
          </ul>
          {more}
        </>
      )}
      <h2>Resources that tools touch now</h2>
      {isPast ? <Empty title="What tools touched then is not kept." /> : <Resources sessionId={sessionId} />}
      {isTaking && <NewLock onClose={() => setIsTaking(false)} />}
    </>
  );
}

function Lock({ lock, isMarked }: { lock: HeldLock; isMarked: boolean }) {
  const acting = useActing();
  const [isAsking, setIsAsking] = useState(false);
  const card = useRef<HTMLElement>(null);
  useEffect(() => {
    if (isMarked) card.current?.scrollIntoView({ block: "nearest" });
  }, [isMarked]);
  return (
    <article ref={card} className="card" data-marked={isMarked} aria-label={`The lock ${lock.name}`}>
      <header className="locks-head">
        <h2 className="mono">{lock.name}</h2>
        <span className="tag">token {lock.token}</span>
        <span className="space" />
        {lock.agentId === null && <OwnLock lock={lock} />}
        <button type="button" {...acting} onClick={() => setIsAsking(true)}>
          Break
        </button>
      </header>
      <p>
        held by <AgentLink agentId={lock.holder} /> for <Since at={lock.acquiredAt} />, runs out{" "}
        <Until at={lock.expiresAt} />
      </p>
      <Line name={lock.name} />
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

/** Who waits for a lock, in the order in which they get it. */
function Line({ name }: { name: string }) {
  const queue = useWorld((world) => world.lockQueues.get(name)) ?? NOBODY;
  const waits = useWorld((world) => world.waits);
  const { first, more } = useFirst(queue);
  if (queue.length === 0) return null;
  return (
    <>
      <ol className="locks-line" aria-label={`Who waits for ${name}`}>
        {first.map((key) => {
          const wait = waits.get(key);
          return wait && <Waiting key={key} wait={wait} />;
        })}
      </ol>
      {more}
    </>
  );
}

const NOBODY: readonly string[] = [];

function Waiting({ wait: { waiter, since, deadlineAt } }: { wait: Wait }) {
  return (
    <li>
      <AgentLink agentId={waiter} /> waits for <Since at={since} />
      {deadlineAt !== null && (
        <>
          , gives up <Until at={deadlineAt} />
        </>
      )}
    </li>
  );
}

/** What a person or a program holds can be kept for longer, or given back in order. */
function OwnLock({ lock: { name, token, acquiredAt, expiresAt } }: { lock: HeldLock }) {
  const acting = useActing();
  const ttlSeconds = Math.max(60, Math.round(expiresAt - acquiredAt));
  return (
    <>
      <button type="button" {...acting} onClick={() => void act("lock.renew", { name, token, ttlSeconds })}>
        Renew
      </button>
      <button type="button" {...acting} onClick={() => void act("lock.release", { name, token })}>
        Release
      </button>
    </>
  );
}
