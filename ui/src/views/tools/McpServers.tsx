import { useState } from "react";
import type { McpServerStatus, McpState } from "../../client/client";
import { words } from "../../parts/format";
import { Empty, Loaded } from "../../parts/Messages";
import { Until } from "../../parts/Times";
import { act } from "../../state/actions";
import { useAnswer } from "../../state/answers";
import { useIsLive, usePage, whyNotLive } from "../../state/page";

/** Which of the page's colours stands for each state. */
const COLOURS: Readonly<Record<McpState, "active" | "idle" | "paused" | "stopped">> = {
  ready: "active",
  starting: "idle",
  not_started: "idle",
  stopped: "paused",
  failed: "stopped",
};

/** The MCP servers of the session with their tools. */
export function McpServers() {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const answer = useAnswer("mcp.list", { sessionId }, ({ name }) => name.startsWith("mcp."));
  return (
    <Loaded answer={answer}>
      {({ servers }) =>
        servers.length === 0 ? (
          <Empty title="No MCP servers.">
            An MCP server brings tools from outside: files, browsers, databases. Name one under <code>[mcp]</code> in{" "}
            <code>whisperer.toml</code> and start the server again; agents are then granted its tools by name.
          </Empty>
        ) : (
          <ul className="cards">
            {servers.map((server) => (
              <li key={server.name}>
                <Card server={server} onStarted={answer.again} />
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  );
}

function Card({ server, onStarted }: { server: McpServerStatus; onStarted: () => void }) {
  const { name, target, state, tools, problems, error, retryAt } = server;
  const isLive = useIsLive();
  const [isBusy, setIsBusy] = useState(false);
  async function start() {
    setIsBusy(true);
    await act("mcp.start", { name });
    setIsBusy(false);
    onStarted();
  }
  return (
    <article className="card" aria-label={name}>
      <header className="view-head">
        <h2>{name}</h2>
        <span className="state" data-state={COLOURS[state]}>
          {words(state)}
        </span>
        {retryAt !== null && (
          <span className="quiet">
            again <Until at={retryAt} />
          </span>
        )}
        <span className="space" />
        <button
          type="button"
          disabled={!isLive || isBusy || state === "ready" || state === "starting"}
          title={isLive ? "Otherwise it is started when an agent needs it." : whyNotLive()}
          onClick={start}
        >
          {isBusy ? "Starting…" : "Start"}
        </button>
      </header>
      <p className="mono quiet tools-source">{target}</p>
      {error !== null && (
        <p className="tools-error" role="alert">
          {error}
        </p>
      )}
      {problems.map((problem) => (
        <p key={problem} className="tools-error">
          {problem}
        </p>
      ))}
      {tools.length === 0 ? (
        <p className="quiet">{state === "ready" ? "It has no tools." : "Its tools are known once it was started."}</p>
      ) : (
        <ul className="tools-mcp">
          {tools.map((tool) => (
            <li key={tool.name}>
              <strong className="mono">{tool.name}</strong>{" "}
              {tool.hints.map((hint) => (
                <span key={hint} className="tag" title="What the server says of it">
                  {words(hint)}
                </span>
              ))}
              <p className="quiet tools-description">{tool.description}</p>
            </li>
          ))}
        </ul>
      )}
    </article>
  );
}
