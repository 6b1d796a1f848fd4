import { useRef, useState } from "react";
import type { LimitScope, LimitState } from "../../client/client";
import { Loaded } from "../../parts/Messages";
import { useSelection } from "../../shell/addresses";
import { useAnswer } from "../../state/answers";
import { useIsPast, usePage } from "../../state/page";
import { useRefreshing } from "../../state/refreshing";
import { Accounts } from "./Accounts";
import { ChangeLimit } from "./ChangeLimit";
import { LimitTable } from "./LimitTable";
import { Reached } from "./Reached";
import { Storage } from "./Storage";
import { UsageTable } from "./UsageTable";
import "./limits.css";

/** Who may change the limits of the server. */
const LOCAL = "local";
const EVERY_MS = 2000;

/** What the session and each agent may use, what they have used, and when they came up against it. */
export default function LimitsView() {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const isLocal = usePage((page) => page.server?.principal === LOCAL);
  const isPast = useIsPast();
  const [agentId, setAgentId] = useSelection("agent");
  const [scopeText, setScope] = useSelection("scope", "session");
  const scope: LimitScope = agentId !== "" ? "agent" : scopeText === "server" ? "server" : "session";
  const report = useAnswer(
    "limits.get",
    { sessionId, agentId: agentId === "" ? null : agentId },
    ({ name }) => name === "limits.changed" || name === "limit.reached" || name === "agent.redefined",
  );
  useRefreshing(report.again, EVERY_MS);
  const [changing, setChanging] = useState<LimitState | null>(null);
  const choose = (next: "session" | "server") => {
    setAgentId("");
    setScope(next);
  };
  const head = useRef<HTMLElement>(null);
  const lead = (next: string) => {
    setAgentId(next);
    head.current?.scrollIntoView(); // its limits are above the usage
  };
  return (
    <>
      <header ref={head} className="view-head">
        <h1>Limits</h1>
        {/* biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out as a line everywhere */}
        <div className="limits-scopes" role="group" aria-label="Whose limits">
          <button type="button" aria-pressed={scope === "session"} onClick={() => choose("session")}>
            Session
          </button>
          {isLocal && (
            <button type="button" aria-pressed={scope === "server"} onClick={() => choose("server")}>
              Server
            </button>
          )}
          {agentId !== "" && (
            <button type="button" aria-pressed="true">
              {agentId}
            </button>
          )}
        </div>
        <span className="space" />
        <a href="#usage">Usage</a>
      </header>
      <p className="quiet limits-told">{TOLD[scope]}</p>
      {isPast && (
        <p className="limits-past">
          These are the limits of today: the log does not tell what they were. Usage and what was reached are those of
          the time that is shown.
        </p>
      )}
      <div className="limits-two">
        <Loaded answer={report}>
          {(data) => <LimitTable limits={data.limits} scope={scope} onChange={setChanging} />}
        </Loaded>
        <div className="limits-part">
          {!isPast && <Accounts />}
          <Reached agentId={agentId} />
        </div>
      </div>
      <UsageTable agentId={agentId} onAgent={lead} />
      {!isPast && <Storage />}
      {changing && (
        <ChangeLimit
          limit={changing}
          scope={scope}
          agentId={agentId}
          onDone={report.again}
          onClose={() => setChanging(null)}
        />
      )}
    </>
  );
}

const TOLD: Readonly<Record<LimitScope, string>> = {
  session: "What this session may use in all, and what holds for its agents unless they state it themselves.",
  server: "What the server states for all its sessions. What the session or an agent states overrides it.",
  agent: "What holds for this agent. What it states itself overrides the session, the server and the defaults.",
  tree: "",
};
