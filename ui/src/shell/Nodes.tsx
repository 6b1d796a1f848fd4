import { useEffect, useState } from "react";
import type { ClusterStatus, NodeStatus, SessionSummary } from "../client/client";
import { Asking } from "../parts/Asking";
import { Confirm } from "../parts/Dialog";
import { count } from "../parts/format";
import { Ago } from "../parts/Times";
import { notify } from "../state/actions";
import { useAnswer } from "../state/answers";
import { server } from "../state/server";

const EVERY_MS = 2000;

/** The cluster as it is now, if the server is one of several nodes. */
export function useCluster(): ClusterStatus | null {
  const { data, again } = useAnswer("cluster.status", {});
  const isOne = data !== undefined;
  useEffect(() => {
    if (!isOne) return;
    const timer = setInterval(again, EVERY_MS);
    return () => clearInterval(timer);
  }, [isOne, again]);
  return data ?? null;
}

/** The nodes that a session can be moved to. */
export function takers(cluster: ClusterStatus | null): readonly NodeStatus[] {
  return cluster?.nodes.filter(({ serves, state }) => serves && state === "joined") ?? [];
}

/** The nodes that share the sessions, and a way to empty one. */
export function Nodes({ cluster }: { cluster: ClusterStatus }) {
  const [drained, setDrained] = useState<NodeStatus | null>(null);
  const { nodes, waiting } = cluster;
  return (
    <section className="nodes" aria-label="Nodes">
      <h2>Nodes</h2>
      {waiting > 0 && (
        <p className="quiet">
          {waiting === 1 ? "1 session with work waits" : `${count(waiting)} sessions with work wait`} for a node.
        </p>
      )}
      <ul className="cards">
        {nodes.map((node) => (
          <li key={node.name} className="session">
            <Card node={node} />
            {node.serves && (
              <button
                type="button"
                disabled={node.state !== "joined"}
                title="Its sessions go to the other nodes, and it takes no more"
                onClick={() => setDrained(node)}
              >
                Drain
              </button>
            )}
          </li>
        ))}
      </ul>
      {drained && (
        <Confirm
          title={`Drain ${drained.name}?`}
          action="Drain"
          onConfirm={() => void drain(drained.name)}
          onClose={() => setDrained(null)}
        >
          Its {count(drained.sessions)} sessions go to the other nodes, when the steps under way have finished. It takes
          no more until it is started again.
        </Confirm>
      )}
    </section>
  );
}

function Card({ node }: { node: NodeStatus }) {
  const { name, address, state, version, sandbox, serves, sessions, startedAt, isThis, hasSameSettings, tags } = node;
  return (
    <article className="card" aria-label={`Node ${name}`}>
      <span>
        <strong>{name}</strong>{" "}
        <span className="state" data-state={state === "joined" ? "active" : "paused"}>
          {state}
        </span>{" "}
        {isThis && <span className="tag">this page</span>}
      </span>
      <span className="quiet">
        {serves ? address : "a program"}, version {version}
        {sandbox !== "" && `, sandbox ${sandbox}`}, started <Ago at={startedAt} />
      </span>
      <span className="quiet">
        {count(sessions)} {sessions === 1 ? "session" : "sessions"}
        {tags.length > 0 && `, tags ${tags.join(", ")}`}
      </span>
      {!hasSameSettings && (
        <span>Its settings are not those of this node: a session that moves may find other tools or models.</span>
      )}
    </article>
  );
}

async function drain(node: string): Promise<void> {
  try {
    await server().call("cluster.drain", { node });
    notify(`${node} gives its sessions to the other nodes.`);
  } catch (error) {
    notify((error as Error).message, { isProblem: true, retry: () => void drain(node) });
  }
}

interface MoveProps {
  session: SessionSummary;
  nodes: readonly NodeStatus[];
  onClose: () => void;
}

/** Asks for the node that a session is to go to. */
export function MoveSession({ session, nodes, onClose }: MoveProps) {
  const [node, setNode] = useState(nodes.find(({ isThis }) => !isThis)?.name ?? nodes[0]?.name ?? "");
  const title = session.title || session.sessionId;
  async function move(): Promise<undefined> {
    const placed = await server().call("cluster.move", { sessionId: session.sessionId, node });
    notify(placed.node === node ? `${title} is at ${node} now.` : `${title} is on its way to ${node}.`);
  }
  return (
    <Asking title={`Move ${title}`} action="Move" onSubmit={move} onClose={onClose}>
      <p className="quiet">The steps under way may finish first. Whoever follows the session notices nothing.</p>
      <label className="field">
        Node
        <select value={node} onChange={({ target }) => setNode(target.value)}>
          {nodes.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
    </Asking>
  );
}
