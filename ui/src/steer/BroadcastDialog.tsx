import { useState } from "react";
import { newId } from "../parts/ids";
import { notify } from "../state/actions";
import { usePage } from "../state/page";
import { server } from "../state/server";
import { Asking } from "./SteerDialog";

/**
 * Broadcasts an event: whoever sleeps for it wakes, whoever subscribes to it gets a task. Tried again after a lost
 * connection, it happens once.
 */
export function BroadcastDialog({ onClose }: { onClose: () => void }) {
  const sessionId = usePage((page) => page.sessionId);
  const [event, setEvent] = useState("");
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  const [eventId] = useState(newId);
  async function submit() {
    const read = readData(text);
    if (event.trim() === "") return setProblem("Give the event a name, such as data_ready.");
    if (typeof read === "string") return setProblem(read);
    try {
      const params = { sessionId: sessionId ?? "", event: event.trim(), eventId, ...read };
      const { woken, notified } = await server().call("async.broadcastEvent", params);
      notify(`The event ${event.trim()} woke ${woken} and gave a task to ${notified}.`);
      onClose();
    } catch (error) {
      setProblem((error as Error).message);
    }
  }
  return (
    <Asking title="Broadcast an event" action="Broadcast" problem={problem} onSubmit={submit} onClose={onClose}>
      <p className="quiet">It wakes agents that sleep until it, and becomes a task for those that subscribe to it.</p>
      <label className="field">
        Event
        <input value={event} placeholder="data_ready" onChange={({ target }) => setEvent(target.value)} />
      </label>
      <label className="field">
        What it carries, as JSON (may be empty)
        <textarea rows={3} className="mono" value={text} onChange={({ target }) => setText(target.value)} />
      </label>
    </Asking>
  );
}

function readData(text: string): { data?: unknown } | string {
  if (text.trim() === "") return {};
  try {
    return { data: JSON.parse(text) };
  } catch {
    return 'What the event carries is not JSON. Write {"rows": 3}, or "a text" with its quotes.';
  }
}
