import { Link } from "wouter";
import type { Notification } from "../../client/client";
import { count, money, words } from "../../parts/format";
import { Loaded } from "../../parts/Messages";
import { useAnswer } from "../../state/answers";
import { useHorizon } from "../../state/horizon";
import { usePage, useWorld } from "../../state/page";
import { type LimitBar, limitBars } from "./limitBars";
import { useLimitsAddress } from "./links";
import { Figures, UsageFacts } from "./UsageFacts";

/** What the agent has used, and how that stands against its limits. */
export function UsageTab({ agentId }: { agentId: string }) {
  const at = useHorizon();
  return at === Number.POSITIVE_INFINITY ? <UsageNow agentId={agentId} /> : <UsageThen agentId={agentId} />;
}

function UsageNow({ agentId }: { agentId: string }) {
  const limitsOf = useLimitsAddress();
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const changes = (note: Notification) => changesUsage(note, agentId);
  const details = useAnswer("agent.get", { sessionId, agentId }, changes);
  const limits = useAnswer("limits.get", { sessionId, agentId }, changes);
  return (
    <>
      <Loaded answer={details}>
        {({ status }) => (
          <section className="agent-part" aria-label="Used">
            <UsageFacts
              usage={status.usage}
              label={status.tasks === 1 ? "in 1 task" : `in ${count(status.tasks)} tasks`}
            />
            <MailsReceived agentId={agentId} />
          </section>
        )}
      </Loaded>
      <Loaded answer={limits}>
        {(report) => (
          <section className="agent-part">
            <h2>
              Limits <Link href={limitsOf(agentId)}>Change them</Link>
            </h2>
            <LimitTable bars={limitBars(report.limits)} />
          </section>
        )}
      </Loaded>
    </>
  );
}

/** It comes with the figures of all agents, so it is asked for once. */
function MailsReceived({ agentId }: { agentId: string }) {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const received = useAnswer("usage.get", { sessionId }).data?.agents[agentId]?.mailsReceived;
  return <p className="quiet">Mails received when this was opened: {received === undefined ? "…" : count(received)}</p>;
}

function changesUsage(note: Notification, agentId: string): boolean {
  if (note.name === "limits.changed") return true;
  const isUse = note.name === "step.finished" || note.name === "limit.reached" || note.name === "async.task.started";
  return isUse && note.params.agentId === agentId;
}

function LimitTable({ bars }: { bars: readonly LimitBar[] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be within reach of the keyboard
    <div className="table-box" tabIndex={0}>
      <table className="table agent-limits">
        <thead>
          <tr>
            <th>Limit</th>
            <th>Used</th>
            <th>Most</th>
            <th>Stated by</th>
            <th>Reached</th>
          </tr>
        </thead>
        <tbody>
          {bars.map(({ name, used, most, percent, source, reached }) => (
            <tr key={name}>
              <td>{words(name)}</td>
              <td>
                {percent !== null && (
                  <meter
                    min={0}
                    max={100}
                    high={80}
                    value={percent}
                    aria-label={`${words(name)}: ${Math.round(percent)} % used`}
                  />
                )}{" "}
                {used ?? <span className="quiet">not counted</span>}
              </td>
              <td>{most ?? <span className="quiet">no limit</span>}</td>
              <td>{source}</td>
              <td>
                {reached === 0 ? (
                  <span className="quiet">never</span>
                ) : reached === 1 ? (
                  "once"
                ) : (
                  `${count(reached)} times`
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Of the past only what the log tells is known. */
function UsageThen({ agentId }: { agentId: string }) {
  const usage = useWorld((world) => world.agents.get(agentId)?.usage);
  if (usage === undefined) return null;
  const figures: [string, string][] = [
    ["model calls", count(usage.modelCalls)],
    ["tool calls", count(usage.toolCalls)],
    ["tokens in", count(usage.inputTokens)],
    ["tokens out", count(usage.outputTokens)],
    ["money", money(usage.costUsd)],
  ];
  return (
    <>
      <Figures label="up to then" figures={figures} />
      <p className="quiet">Limits are known as they are now: go back to live to see them.</p>
    </>
  );
}
