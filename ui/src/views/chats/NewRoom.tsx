import { useState } from "react";
import { AgentChoice } from "../../parts/AgentChoice";
import { Asking } from "../../parts/Asking";
import { useIdOf } from "../../parts/ids";
import { readNumber } from "../../parts/numbers";
import { useOpening } from "../../shell/chatting";
import { attempt } from "../../state/actions";

const HOP_LIMIT = 4;
const MOST_HOPS = 100;

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
