import "../../parts/long-text.css";
import { visible } from "../../parts/markdown/visible";
import { usePage } from "../../state/page";

const SHOWN = 4_000;

/** What a task is writing at this moment, by channel. There is nothing of it in the past. */
export function StreamText({ taskId }: { taskId: string }) {
  const stream = usePage((page) => (page.playhead === null ? page.streams.get(taskId) : undefined));
  if (stream === undefined) return null;
  return (
    <section className="agent-stream" aria-label="Being written">
      <Channel name="Analysis" text={stream.analysis} />
      <Channel name="Commentary" text={stream.commentary} />
      <Channel name="Answer" text={stream.final} />
      <Channel name="Output" text={stream.output} />
    </section>
  );
}

/** Of a long one the end is shown: that is where it goes on. */
function Channel({ name, text }: { name: string; text: string }) {
  if (text === "") return null;
  return (
    <div>
      <span className="quiet">{name}</span>
      <div className={name === "Output" ? "long-text mono" : "long-text"} dir="auto">
        {visible(text.length > SHOWN ? `…${text.slice(-SHOWN)}` : text)}
      </div>
    </div>
  );
}
