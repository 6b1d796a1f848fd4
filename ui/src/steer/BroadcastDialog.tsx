import { useState } from "react";
import { Asking } from "../parts/Asking";
import { count } from "../parts/format";
import { useIdOf } from "../parts/ids";
import { attempt, notify } from "../state/actions";

/** Broadcasts an event: whoever sleeps for it wakes, whoever subscribes to it gets a task. */
export function BroadcastDialog({ onClose }: { onClose: () => void }) {
  const [event, setEvent] = useState("");
  const [text, setText] = useState("");
  const eventId = useIdOf({ event, text });
  async function submit() {
    const read = readData(text);
    if (event.trim() === "") return "Give the event a name, such as data_ready.";
    if (typeof read === "string") return read;
    const { woken, notified } = await attempt("async.broadcastEvent", { event: event.trim(), eventId, ...read });
    notify(broadcastInWords(event.trim(), woken, notified));
    return undefined;
  }
  return (
    <Asking title="Broadcast an event" action="Broadcast" onSubmit={submit} onClose={onClose}>
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

/** What an event did. */
export function broadcastInWords(event: string, woken: number, notified: number): string {
  if (woken === 0 && notified === 0)
    return `The event ${event} was broadcast. Nobody slept until it or subscribes to it.`;
  const woke = woken === 0 ? "woke nobody" : `woke ${agents(woken)}`;
  const gave = notified === 0 ? "gave nobody a task" : `gave ${agents(notified)} a task`;
  return `The event ${event} ${woke} and ${gave}.`;
}

function agents(number: number): string {
  return `${count(number)} ${number === 1 ? "agent" : "agents"}`;
}

function readData(text: string): { data?: unknown } | string {
  if (text.trim() === "") return {};
  try {
    return { data: JSON.parse(text) };
  } catch {
    return 'What the event carries is not JSON. Write {"rows": 3}, or "a text" with its quotes.';
  }
}
