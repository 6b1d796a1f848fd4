import { useEffect, useState } from "react";
import type { ChannelResponse } from "../../client/client";
import { Markdown } from "../../parts/Markdown";
import { Problem } from "../../parts/Messages";
import { type Stream, usePage } from "../../state/page";
import { channelsOf } from "./transcript";

interface ThoughtsProps {
  taskId: string;
  /** What is being written now; without it the answer is complete, and is asked for when it is unfolded. */
  stream: Stream | null;
}

/** The channels beside the final one, folded: what an agent says on its way, and what it thinks. */
export function Thoughts({ taskId, stream }: ThoughtsProps) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details className="chat-thoughts" onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>Commentary and analysis</summary>
      {isOpen && (stream === null ? <Kept taskId={taskId} /> : <Channels channels={stream} isGrowing />)}
    </details>
  );
}

function Kept({ taskId }: { taskId: string }) {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const [channels, setChannels] = useState<ChannelResponse | Error | null>(null);
  const [turn, setTurn] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new turn asks again
  useEffect(() => {
    let isWanted = true;
    channelsOf(sessionId, taskId).then(
      (found) => isWanted && setChannels(found),
      (error) => isWanted && setChannels(error),
    );
    return () => {
      isWanted = false;
    };
  }, [sessionId, taskId, turn]);
  if (channels instanceof Error) return <Problem error={channels} onRetry={() => setTurn(turn + 1)} />;
  if (channels === null) return <p className="quiet">Loading…</p>;
  return <Channels channels={channels} />;
}

type Shown = Pick<ChannelResponse, "commentary" | "analysis">;

function Channels({ channels, isGrowing = false }: { channels: Shown; isGrowing?: boolean }) {
  const { commentary, analysis } = channels;
  if (commentary === "" && analysis === "")
    return <p className="quiet">{isGrowing ? "Nothing yet." : "The answer has neither."}</p>;
  return (
    <>
      {commentary !== "" && (
        <section aria-label="Commentary">
          <h3>Commentary</h3>
          <Markdown text={commentary} isGrowing={isGrowing} />
        </section>
      )}
      {analysis !== "" && (
        <section aria-label="Analysis">
          <h3>Analysis</h3>
          <Markdown text={analysis} isGrowing={isGrowing} />
        </section>
      )}
    </>
  );
}
