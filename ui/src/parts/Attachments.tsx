import type { Attachment } from "../client/client";
import { notify } from "../state/actions";
import { useAnswer } from "../state/answers";
import { usePage } from "../state/page";
import { server } from "../state/server";
import { bytes } from "./format";
import { visible } from "./markdown/visible";

/** The images that are shown as such: they run nothing, whatever is in them. All else is only to be saved. */
const SHOWN = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** So long the browser may take to begin saving. */
const KEPT_MS = 10_000;

/** What came with a message or a task: images in sight, files to be saved. */
export function Attachments({ parts }: { parts: readonly Attachment[] | null }) {
  if (!parts?.length) return null;
  return (
    <ul className="attachments" aria-label="Attached">
      {parts.map((part, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the same content may be there twice, and they never change
        <li key={`${part.digest} ${index}`}>
          {SHOWN.has(part.mediaType) && <Picture part={part} />}
          <button type="button" className="attachment-save" onClick={() => void save(part)}>
            <bdi>{visible(part.name)}</bdi> <span className="quiet">{bytes(part.size)}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

function Picture({ part }: { part: Attachment }) {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const answer = useAnswer("attachment.get", { sessionId, digest: part.digest });
  if (answer.error !== null) return <p className="quiet">{answer.error.message}</p>;
  if (answer.data === undefined) return <p className="quiet attachment-waiting">Loading…</p>;
  return <img src={`data:${part.mediaType};base64,${answer.data.data}`} alt={visible(part.name)} />;
}

/** Save the content as a file. It is never opened here: a browser takes it for nothing but bytes. */
async function save(part: Attachment): Promise<void> {
  const sessionId = usePage.getState().sessionId ?? "";
  let content: string;
  try {
    content = (await server().call("attachment.get", { sessionId, digest: part.digest })).data;
  } catch (problem) {
    notify((problem as Error).message, { isProblem: true });
    return;
  }
  const data = Uint8Array.from(atob(content), (character) => character.charCodeAt(0));
  const url = URL.createObjectURL(new Blob([data], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = part.name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
}
