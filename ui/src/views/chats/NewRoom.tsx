import { useState } from "react";
import { useLocation } from "wouter";
import { AgentChoice } from "../../parts/AgentChoice";
import { Dialog } from "../../parts/Dialog";
import { useIdOf } from "../../parts/ids";
import { useAddress } from "../../shell/addresses";
import { act } from "../../state/actions";
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

export function NewChat({ onClose }: { onClose: () => void }) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [agentId] = chosen;
  const [isBusy, setIsBusy] = useState(false);
  const [, go] = useLocation();
  const to = useAddress();
  const open = async () => {
    if (agentId === undefined) return;
    setIsBusy(true);
    const room = await act("room.openChat", { agentId });
    if (room !== undefined) await shown(room.roomId);
    setIsBusy(false);
    if (room === undefined) return;
    onClose();
    go(to("chats", room.roomId));
  };
  return (
    <Dialog title="Chat with an agent" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void open();
        }}
      >
        <AgentChoice label="Agent" chosen={chosen} onChange={setChosen} />
        <div className="dialog-actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={agentId === undefined || isBusy}>
            Open the chat
          </button>
        </div>
      </form>
    </Dialog>
  );
}

export function NewGroup({ onClose }: { onClose: () => void }) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [title, setTitle] = useState("");
  const [hopLimit, setHopLimit] = useState(HOP_LIMIT);
  const [isBusy, setIsBusy] = useState(false);
  const [, go] = useLocation();
  const to = useAddress();
  const group = { members: [...chosen], title: title.trim(), hopLimit };
  const roomId = useIdOf(group);
  const create = async () => {
    setIsBusy(true);
    const room = await act("room.create", { ...group, roomId });
    if (room !== undefined) await shown(room.roomId);
    setIsBusy(false);
    if (room === undefined) return;
    onClose();
    go(to("chats", room.roomId));
  };
  return (
    <Dialog title="New group" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void create();
        }}
      >
        <label className="field">
          Title
          <input value={title} maxLength={200} onChange={(event) => setTitle(event.target.value)} />
        </label>
        <AgentChoice label="Members" chosen={chosen} onChange={setChosen} isMany />
        <label className="field">
          Answers of agents in a row that may ask further members
          <input
            type="number"
            min={0}
            max={MOST_HOPS}
            required
            value={Number.isNaN(hopLimit) ? "" : hopLimit}
            onChange={(event) => setHopLimit(event.target.valueAsNumber)}
          />
        </label>
        <div className="dialog-actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={chosen.size === 0 || isBusy}>
            Create the group
          </button>
        </div>
      </form>
    </Dialog>
  );
}
