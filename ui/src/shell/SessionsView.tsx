import { type FormEvent, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import type { SessionSummary } from "../client/client";
import { Confirm } from "../parts/Dialog";
import { count } from "../parts/format";
import { Icon } from "../parts/Icon";
import { Empty } from "../parts/Messages";
import { useSettling } from "../parts/settling";
import { Ago } from "../parts/Times";
import { notify } from "../state/actions";
import { follow, refreshSessions } from "../state/following";
import { usePage } from "../state/page";
import { server } from "../state/server";
import { useTitles } from "../state/titles";
import { addressOf, useLeading } from "./addresses";
import { ConnectionBadge } from "./ConnectionBadge";
import { ModelBadge } from "./ModelBadge";
import { MoveSession, Nodes, takers, useCluster } from "./Nodes";
import { Notices } from "./Notices";

/** The sessions of the user, and a way to make one. */
export function SessionsView() {
  const sessions = usePage((page) => page.sessions);
  const titleOf = useTitles();
  const list = useRef<HTMLUListElement>(null);
  useSettling(list);
  const [deleted, setDeleted] = useState<SessionSummary | null>(null);
  const [moved, setMoved] = useState<SessionSummary | null>(null);
  const cluster = useCluster();
  const nodes = takers(cluster);
  useEffect(() => {
    void follow(null);
    if (usePage.getState().connection === "open") void refreshSessions(); // otherwise it is read when there is one
  }, []);
  return (
    <main className="gate">
      <header className="gate-head">
        <h1>AI Whisperer</h1>
        <ModelBadge />
        <ConnectionBadge />
      </header>
      <h2>Sessions</h2>
      {sessions === null && <p className="loading">Loading…</p>}
      {sessions?.length === 0 && (
        <Empty title="No sessions yet.">
          A session is a workspace with agents of its own. Make one here, or run{" "}
          <code>whisperer run alice "Introduce yourself"</code>.
        </Empty>
      )}
      <ul ref={list} className="cards">
        {sessions?.map((session) => (
          <li key={session.sessionId} className="session">
            <Link href={addressOf(session.sessionId)} className="card">
              <strong>{titleOf(session.sessionId)}</strong>
              <span className="quiet">
                {count(session.agents)} {session.agents === 1 ? "agent" : "agents"}, made <Ago at={session.createdAt} />
              </span>
            </Link>
            {(sessions?.length ?? 0) > 1 && (
              <Link
                href={addressOf(session.sessionId, "compare")}
                aria-label={`Compare ${titleOf(session.sessionId)} with another`}
              >
                Compare
              </Link>
            )}
            {nodes.length > 1 && (
              <button type="button" aria-label={`Move ${titleOf(session.sessionId)}`} onClick={() => setMoved(session)}>
                Move
              </button>
            )}
            <button
              type="button"
              className="icon-button"
              aria-label={`Delete ${titleOf(session.sessionId)}`}
              onClick={() => setDeleted(session)}
            >
              <Icon name="close" />
            </button>
          </li>
        ))}
      </ul>
      <NewSession />
      {cluster && <Nodes cluster={cluster} />}
      {moved && <MoveSession session={moved} nodes={nodes} onClose={() => setMoved(null)} />}
      {deleted && (
        <Confirm
          title={`Delete ${titleOf(deleted.sessionId)}?`}
          action="Delete for good"
          onConfirm={() => void remove(deleted.sessionId)}
          onClose={() => setDeleted(null)}
        >
          Its {count(deleted.agents)} agents are stopped. Everything in it, tasks, mails, chats, is deleted for good.
        </Confirm>
      )}
      <Notices />
    </main>
  );
}

async function remove(sessionId: string): Promise<void> {
  try {
    await server().call("session.delete", { sessionId });
    await refreshSessions();
  } catch (error) {
    notify((error as Error).message, { isProblem: true, retry: () => void remove(sessionId) });
  }
}

function NewSession() {
  const [title, setTitle] = useState("");
  const [isBusy, setIsBusy] = useState(false);
  const lead = useLeading();
  async function create(event: FormEvent) {
    event.preventDefault();
    if (isBusy) return;
    setIsBusy(true);
    try {
      const { sessionId } = await server().call("session.create", { title });
      await refreshSessions();
      lead(addressOf(sessionId));
    } catch (error) {
      notify((error as Error).message, { isProblem: true });
    } finally {
      setIsBusy(false);
    }
  }
  return (
    <form className="line" onSubmit={create}>
      <label className="field">
        New session
        <input value={title} placeholder="What it is about" onChange={(event) => setTitle(event.target.value)} />
      </label>
      <button type="submit" className="primary" aria-disabled={isBusy}>
        Create
      </button>
    </form>
  );
}
