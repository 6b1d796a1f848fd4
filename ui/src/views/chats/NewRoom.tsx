import { useState } from "react";
import { useLocation } from "wouter";
import { AgentChoice } from "../../parts/AgentChoice";
import { Asking } from "../../parts/Asking";
import { useIdOf } from "../../parts/ids";
import { readNumber } from "../../parts/numbers";
import { useAddress } from "../../shell/addresses";
import { attempt } from "../../state/actions";
import { usePage } from "../../state/page";

const HOP_LIMIT = 4;
const MOST_HOPS = 100;

const PATIENCE_MS = 2_000;

/** Wait until the page has heard of a room that was just made: before that it would say that there is none. */
function shown(roomId: string): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, PATIENCE_MS);
    const leave = usePage.subscribe(look);
    function done() {
      clearTimeout(timer);
      leave();
      resolve();
    }
    function look() {
      if (usePage.getState().live.rooms.has(roomId)) done();
    }
    look();
  });
}

/** Make a room and go to it, as soon as the page knows it. */
function useOpening(): (made: Promise<{ roomId: string }>) => Promise<undefined> {
  const [, go] = useLocation();
  const to = useAddress();
  return async (made) => {
    const { roomId } = await made;
    await shown(roomId);
    go(to("chats", roomId));
  };
}

export function NewChat({ onClose }: { onClose: () => void }) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const open = useOpening();
  const submit = async () => {
    const [agentId] = chosen;
    return agentId === undefined ? "Choose an agent first." : open(attempt("room.openChat", { agentId }));
  };
  return (
    <Asking title="Chat with an agent" action="Open the chat" onSubmit={submit} onClose={onClose}>
      <AgentChoice label="Agent" chosen={chosen} onChange={setChosen} />
    </Asking>
  );
}

export function NewGroup({ onClose }: { onClose: () => void }) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [title, setTitle] = useState("");
  const [hops, setHops] = useState(String(HOP_LIMIT));
  const roomId = useIdOf({ members: [...chosen], title, hops });
  const open = useOpening();
  const submit = async () => {
    const hopLimit = readNumber(hops);
    if (chosen.size === 0) return "Choose who is in the group: one agent at least.";
    if (!Number.isInteger(hopLimit) || hopLimit < 0 || hopLimit > MOST_HOPS)
      return `How many answers follow each other must be a whole number from 0 to ${MOST_HOPS}.`;
    return open(attempt("room.create", { members: [...chosen], title: title.trim(), hopLimit, roomId }));
  };
  return (
    <Asking title="New group" action="Create the group" onSubmit={submit} onClose={onClose}>
      <label className="field">
        Title
        <input value={title} maxLength={200} onChange={(event) => setTitle(event.target.value)} />
      </label>
      <AgentChoice label="Members" chosen={chosen} onChange={setChosen} isMany />
      <label className="field">
        How often in a row agents may ask each other before you write again
        <input inputMode="numeric" value={hops} onChange={(event) => setHops(event.target.value)} />
      </label>
      <p className="quiet">An answer that mentions @others asks them in turn. With 0 only you can ask.</p>
    </Asking>
  );
}
