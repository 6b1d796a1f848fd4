import type { MemoryFile, Notification } from "../../client/client";
import { bytes } from "../../parts/format";
import { LongText } from "../../parts/LongText";
import { Empty, Loaded } from "../../parts/Messages";
import { Ago } from "../../parts/Times";
import { useSelection } from "../../shell/addresses";
import { useAnswer } from "../../state/answers";
import { useHorizon } from "../../state/horizon";
import { usePage } from "../../state/page";
import { Item } from "./Listing";

/** The file that the agent is told when a task begins. */
const INDEX = "MEMORY.md";

/** What the agent keeps in mind: its own files, each with its text. */
export function MemoryTab({ agentId }: { agentId: string }) {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const at = useHorizon();
  const [open, setOpen] = useSelection("file");
  const answer = useAnswer("memory.list", { sessionId, agentId }, (note) => mayChange(note, agentId));
  return (
    <>
      {at !== Number.POSITIVE_INFINITY && (
        <p className="quiet">The memory is shown as it is now: the log does not keep earlier ones.</p>
      )}
      <Loaded answer={answer}>
        {({ files }) => (
          <>
            {files.length === 0 && (
              <Empty title="It keeps nothing in mind.">
                An agent that is granted the tool <code>memory</code> can keep notes in files of its own. It is told the
                file {INDEX} at the beginning of each task.
              </Empty>
            )}
            <ul className="agent-list" aria-label="Files of its memory">
              {files.map((file) => (
                <Item
                  key={file.path}
                  isOpen={file.path === open}
                  onToggle={() => setOpen(file.path === open ? "" : file.path)}
                  line={<FileLine file={file} />}
                >
                  {file.path === open && <FileText agentId={agentId} path={file.path} />}
                </Item>
              ))}
            </ul>
          </>
        )}
      </Loaded>
    </>
  );
}

function FileLine({ file }: { file: MemoryFile }) {
  return (
    <>
      <strong className="mono">{file.path}</strong>
      {file.path === INDEX && <span className="tag">told at each task</span>}
      <span className="agent-row-facts quiet">
        <span>{bytes(file.size)}</span>
        <span>
          changed <Ago at={file.changedAt} />
        </span>
      </span>
    </>
  );
}

function FileText({ agentId, path }: { agentId: string; path: string }) {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const answer = useAnswer("memory.read", { sessionId, agentId, path }, (note) => mayChange(note, agentId));
  return (
    <div className="agent-details">
      <Loaded answer={answer}>
        {(file) => (
          <>
            {file.text === "" ? <p className="quiet">It is empty.</p> : <LongText text={file.text} />}
            {file.isCut && <p className="quiet">The file has {bytes(file.size)}; this is its beginning.</p>}
          </>
        )}
      </Loaded>
    </div>
  );
}

/** Whether a step of the agent has ended that may have changed its files. */
function mayChange(note: Notification, agentId: string): boolean {
  return note.name === "step.finished" && note.params.agentId === agentId && note.params.kind === "tool";
}
