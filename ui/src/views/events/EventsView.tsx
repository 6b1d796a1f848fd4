import { useMemo } from "react";
import { useLocation } from "wouter";
import type { EventRecord, Notification } from "../../client/client";
import { AgentLink } from "../../parts/AgentLink";
import { count } from "../../parts/format";
import { Empty, Loaded, LookedThrough } from "../../parts/Messages";
import { At } from "../../parts/Times";
import { ViewHead } from "../../parts/ViewHead";
import { useAddress, usePlace } from "../../shell/addresses";
import { openDialog } from "../../shell/dialogState";
import { useHorizon } from "../../state/horizon";
import { useNewest } from "../../state/newest";
import { usePage } from "../../state/page";
import { useWorldSlowly } from "../../state/slowly";
import "./events.css";

const SHOWN = 200;

/** The events that were broadcast, and a way to broadcast one. */
export default function EventsView() {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const { item: opened } = usePlace();
  const until = useHorizon();
  const answer = useNewest("async.listEvents", { sessionId }, { wanted: SHOWN, refreshOn: isBroadcast });
  return (
    <>
      <ViewHead title="Events" action="Broadcast an event" onAct={() => openDialog({ kind: "broadcast" })} />
      <Waiting />
      <Loaded answer={answer}>
        {({ events }) => <Events events={then(events, until)} isLoading={answer.isLoading} opened={opened} />}
      </Loaded>
      <LookedThrough most={answer.lookedThrough} />
    </>
  );
}

function isBroadcast({ name }: Notification): boolean {
  return name === "event.broadcast";
}

/** Those that had been broadcast by then. */
function then(events: readonly EventRecord[], until: number): EventRecord[] {
  return events.filter((event) => event.createdAt <= until).slice(0, SHOWN);
}

/** Who sleeps until which event. */
function Waiting() {
  const agents = useWorldSlowly((world) => world.agents);
  const asleep = useMemo(() => [...agents.values()].filter((agent) => agent.wakeEvents.length > 0), [agents]);
  if (asleep.length === 0) return null;
  return (
    <section className="card" aria-label="Who waits for events">
      <h2>Asleep until an event</h2>
      <ul className="events-waiting">
        {asleep.slice(0, SHOWN).map((agent) => (
          <li key={agent.agentId}>
            <AgentLink agentId={agent.agentId} /> until{" "}
            {agent.wakeEvents.map((name) => (
              <code key={name}>{name} </code>
            ))}
          </li>
        ))}
      </ul>
    </section>
  );
}

interface EventsProps {
  events: EventRecord[];
  /** Whether earlier ones are still looked for. */
  isLoading: boolean;
  opened: string | undefined;
}

function Events({ events, isLoading, opened }: EventsProps) {
  const address = useAddress();
  const [, go] = useLocation();
  if (events.length === 0 && isLoading) return <p className="loading">Loading…</p>;
  if (events.length === 0) {
    return (
      <Empty title="No events yet.">
        An event wakes the agents that sleep until it, and becomes a task for those whose definition subscribes to it.
        Agents broadcast with <code>broadcast_event</code>, you with the button above or{" "}
        <code>whisperer events send alert</code>.
      </Empty>
    );
  }
  return (
    <div className="table-box">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Event</th>
            <th scope="col">From</th>
            <th scope="col">Woken</th>
            <th scope="col">Tasks</th>
          </tr>
        </thead>
        <tbody>
          {events.map((event) => (
            <tr key={event.eventId}>
              <td>
                <At at={event.createdAt} />
              </td>
              <td>
                <details
                  open={event.eventId === opened}
                  onToggle={({ currentTarget }) => {
                    const isThis = event.eventId === opened;
                    if (currentTarget.open && !isThis) go(address("events", event.eventId), { replace: true });
                    if (!currentTarget.open && isThis) go(address("events"), { replace: true });
                  }}
                >
                  <summary>
                    <code>{event.name}</code>
                  </summary>
                  <pre className="events-data">{JSON.stringify(event.data, null, 2)}</pre>
                  <p className="quiet mono">{event.eventId}</p>
                </details>
              </td>
              <td>
                <AgentLink agentId={event.sender} />
              </td>
              <td>{count(event.woken)}</td>
              <td>{count(event.notified)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {events.length === SHOWN && <p className="quiet events-more">These are the newest {SHOWN}; the log has all.</p>}
    </div>
  );
}
