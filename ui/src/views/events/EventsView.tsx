import { type FormEvent, useState } from "react";
import { useLocation, useParams } from "wouter";
import type { EventRecord } from "../../client/client";
import { AgentLink } from "../../parts/AgentLink";
import { Dialog } from "../../parts/Dialog";
import { count } from "../../parts/format";
import { Empty, Loaded } from "../../parts/Messages";
import { At } from "../../parts/Times";
import { useAddress } from "../../shell/addresses";
import { act, notify } from "../../state/actions";
import { useAnswer } from "../../state/answers";
import { useIsLive, usePage, useWorld } from "../../state/page";
import { dataOf } from "./data";
import "./events.css";

const SHOWN = 200;

/** The events that were broadcast, and a way to broadcast one. */
export default function EventsView() {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const { item: opened } = useParams<{ item?: string }>();
  const until = usePage((page) => page.playhead?.world.at ?? Number.POSITIVE_INFINITY);
  const isLive = useIsLive();
  const [isSending, setIsSending] = useState(false);
  const answer = useAnswer("async.listEvents", { sessionId, limit: SHOWN }, ({ name }) => name === "event.broadcast");
  return (
    <>
      <div className="view-head">
        <h1>Events</h1>
        <span className="space" />
        <button type="button" className="primary" disabled={!isLive} onClick={() => setIsSending(true)}>
          Broadcast an event
        </button>
      </div>
      <Waiting />
      <Loaded answer={answer}>
        {({ events }) => <Events events={events.filter((event) => event.createdAt <= until)} opened={opened} />}
      </Loaded>
      {isSending && <Broadcast onClose={() => setIsSending(false)} />}
    </>
  );
}

/** Who sleeps until which event. */
function Waiting() {
  const agents = useWorld((world) => world.agents);
  const asleep = [...agents.values()].filter((agent) => agent.wakeEvents.length > 0);
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

function Events({ events, opened }: { events: EventRecord[]; opened: string | undefined }) {
  const address = useAddress();
  const [, go] = useLocation();
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

/** A form for an event. Under its id it happens once, however often it is sent. */
export function Broadcast({ onClose, name = "" }: { onClose: () => void; name?: string }) {
  const [event, setEvent] = useState(name);
  const [data, setData] = useState("");
  const [eventId] = useState(() => crypto.randomUUID());
  const [problem, setProblem] = useState("");
  async function send(submitted: FormEvent) {
    submitted.preventDefault();
    const read = dataOf(data);
    if (read.problem !== null) {
      setProblem(read.problem);
      return;
    }
    const sent = await act("async.broadcastEvent", { event, data: read.value, eventId });
    if (sent === undefined) return;
    notify(`${event} woke ${sent.woken} and became a task of ${sent.notified}.`);
    onClose();
  }
  return (
    <Dialog title="Broadcast an event" onClose={onClose}>
      <form onSubmit={(submitted) => void send(submitted)}>
        <label className="field">
          Name
          <input value={event} required onChange={({ target }) => setEvent(target.value)} />
        </label>
        <label className="field">
          Data, as JSON (may be empty)
          <textarea
            className="mono"
            rows={4}
            value={data}
            aria-invalid={problem !== ""}
            aria-describedby="event-data-problem"
            onChange={({ target }) => setData(target.value)}
          />
        </label>
        <p id="event-data-problem" className="events-problem" role="alert">
          {problem}
        </p>
        <div className="dialog-actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary">
            Broadcast
          </button>
        </div>
      </form>
    </Dialog>
  );
}
