import { useState } from "react";
import { AgentChoice } from "../../parts/AgentChoice";
import { Asking } from "../../parts/Asking";
import { useActing } from "../../parts/acting";
import { Dialog } from "../../parts/Dialog";
import type { Room } from "../../projection/world";
import { attempt } from "../../state/actions";
import { useName } from "../../state/names";
import { Sender } from "./names";

/** Who is in a group; others can be let in, and members taken out. */
export function Members({ room, onClose }: { room: Room; onClose: () => void }) {
  const [leaving, setLeaving] = useState<string | null>(null);
  const [isDeleting, setIsDeleting] = useState(false);
  const { disabled, title } = useActing();
  if (leaving !== null) return <Removal room={room} agentId={leaving} onClose={() => setLeaving(null)} />;
  if (isDeleting) return <Deletion room={room} onClose={onClose} />;
  return (
    <Dialog title="Members" onClose={onClose}>
      <p className="quiet">An answer that mentions members asks them in turn, up to {room.hopLimit} times in a row.</p>
      <ul className="members">
        {room.members.map((agentId) => (
          <li key={agentId}>
            <Sender sender={agentId} />
            <span className="space" />
            <button
              type="button"
              disabled={disabled || room.members.length === 1}
              title={room.members.length === 1 ? "A group has one member at least." : title}
              onClick={() => setLeaving(agentId)}
            >
              Remove<span className="visually-hidden"> {agentId}</span>
            </button>
          </li>
        ))}
      </ul>
      <Addition room={room} />
      <div className="dialog-actions">
        <button type="button" className="danger" disabled={disabled} title={title} onClick={() => setIsDeleting(true)}>
          Delete the group…
        </button>
      </div>
    </Dialog>
  );
}

function Addition({ room }: { room: Room }) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [problem, setProblem] = useState("");
  const acting = useActing();
  const add = async () => {
    if (chosen.size === 0) return setProblem("Choose who is let in.");
    setProblem("");
    const left = new Set(chosen);
    try {
      for (const agentId of chosen) {
        await attempt("room.addMember", { roomId: room.roomId, agentId });
        left.delete(agentId);
      }
    } catch (error) {
      setProblem((error as Error).message);
    }
    setChosen(left);
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void add();
      }}
    >
      <AgentChoice label="Let in" chosen={chosen} without={room.members} onChange={setChosen} isMany />
      <p className="asking-problem" role="alert">
        {problem}
      </p>
      <div className="dialog-actions">
        <button type="submit" {...acting}>
          Add to the group
        </button>
      </div>
    </form>
  );
}

function Deletion({ room, onClose }: { room: Room; onClose: () => void }) {
  const remove = async () => void (await attempt("room.delete", { roomId: room.roomId }));
  return (
    <Asking title="Delete this group?" action="Delete for good" onSubmit={remove} onClose={onClose}>
      <p>All that was said in it goes, and cannot be brought back. Answers that are under way are cancelled.</p>
    </Asking>
  );
}

function Removal({ room, agentId, onClose }: { room: Room; agentId: string; onClose: () => void }) {
  const name = useName(agentId);
  const remove = async () => void (await attempt("room.removeMember", { roomId: room.roomId, agentId }));
  return (
    <Asking title={`Remove ${name}?`} action="Remove" onSubmit={remove} onClose={onClose}>
      <p>What it is about to answer is no longer posted. You can let it in again.</p>
    </Asking>
  );
}
