import { memo } from "react";
import { Link } from "wouter";
import { count, money, words } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { Progress } from "../../parts/Progress";
import { AgentBadge } from "../../parts/StateBadge";
import { Until } from "../../parts/Times";
import type { Agent, Wait } from "../../projection/world";
import { useAddress } from "../../shell/addresses";
import { useWorld } from "../../state/page";
import { Cell } from "./Cell";
import { Lately } from "./Lately";
import type { RowMenuPlace } from "./RowMenu";
import { standing } from "./standing";

interface FleetRowProps {
  agentId: string;
  index: number;
  waits: readonly Wait[] | undefined;
  isActive: boolean;
  isTicked: boolean;
  onTick: (agentId: string, isRange: boolean) => void;
  onMenu: (place: RowMenuPlace) => void;
  onActive: (agentId: string) => void;
}

/** One agent. It is drawn anew when the agent changes, not when others do. */
export const FleetRow = memo(function FleetRow(props: FleetRowProps) {
  const { agentId, index, waits, isActive, isTicked, onTick, onMenu, onActive } = props;
  const agent = useWorld((world) => world.agents.get(agentId));
  const address = useAddress()("agents", agentId);
  if (agent === undefined) return null;
  const name = agent.name || agentId;
  const tabIndex = isActive ? 0 : -1;
  return (
    // biome-ignore lint/a11y/useSemanticElements: rows in sight only cannot be those of a table element
    <div
      role="row"
      className="fleet-row"
      aria-rowindex={index + 2}
      data-agent={agentId}
      data-active={isActive}
      data-ticked={isTicked}
      tabIndex={tabIndex}
      onFocus={() => onActive(agentId)}
    >
      <Cell name="tick">
        <input
          type="checkbox"
          tabIndex={tabIndex}
          aria-label={`Choose ${name}`}
          checked={isTicked}
          onChange={({ nativeEvent }) => onTick(agentId, (nativeEvent as MouseEvent).shiftKey)}
        />
      </Cell>
      <Cell name="name" role="rowheader">
        <Link href={address} tabIndex={tabIndex} className="ellipsis" title={agentId}>
          {name}
        </Link>
        <span className="quiet ellipsis" title={agent.description}>
          {agent.description || (name === agentId ? "" : agentId)}
        </span>
      </Cell>
      <Cell name="state">
        <AgentBadge agent={agent} />
      </Cell>
      <CurrentTask agent={agent} />
      <Cell name="progress" title={agent.progressNote}>
        {agent.progressPercent !== null && <Progress percent={agent.progressPercent} note="" />}
        {agent.progressNote && <span className="quiet ellipsis fleet-note">{agent.progressNote}</span>}
      </Cell>
      <Waiting agent={agent} waits={waits} tabIndex={tabIndex} />
      <Amount name="queue" label="queued" value={count(agent.queueSize)} isNone={agent.queueSize === 0} />
      <Amount name="mail" label="unread" value={count(agent.unreadMail)} isNone={agent.unreadMail === 0} />
      <Used agent={agent} />
      <Cell name="activity" isNumber isNone>
        <Lately at={agent.lastActivityAt} />
      </Cell>
      <Cell name="more">
        <button
          type="button"
          className="icon-button"
          tabIndex={tabIndex}
          aria-label={`Actions for ${name}`}
          aria-haspopup="menu"
          onClick={({ currentTarget }) => {
            const { right, bottom } = currentTarget.getBoundingClientRect();
            onMenu({ agentId, x: right, y: bottom });
          }}
        >
          <Icon name="more" />
        </button>
      </Cell>
    </div>
  );
});

function CurrentTask({ agent }: { agent: Agent }) {
  const task = useWorld((world) => world.tasks.get(agent.runningTasks[0] ?? ""));
  const more = agent.runningTasks.length - 1;
  if (agent.currentTask === null) return <Cell name="task" />;
  return (
    <Cell name="task" title={task?.summary}>
      <span className="fleet-kind">
        {words(agent.currentTask)}
        {more > 0 && ` and ${more} more`}
      </span>
      <span className="ellipsis">{task?.summary}</span>
    </Cell>
  );
}

interface WaitingProps {
  agent: Agent;
  waits: readonly Wait[] | undefined;
  tabIndex: number;
}

function Waiting({ agent, waits, tabIndex }: WaitingProps) {
  const found = standing(agent, waits);
  const address = useAddress();
  return (
    <Cell name="waiting" title={found.map(({ text }) => text).join("; ")}>
      {found.slice(0, 2).map(({ kind, text, at, to }) => (
        <span key={kind + text} className="ellipsis" data-kind={kind}>
          {to === undefined ? (
            text
          ) : (
            <Link href={address(...to)} tabIndex={tabIndex}>
              {text}
            </Link>
          )}
          {text !== "" && at !== null && " "}
          {at !== null && <Until at={at} />}
        </span>
      ))}
    </Cell>
  );
}

function Used({ agent: { usage } }: { agent: Agent }) {
  const { inputTokens, outputTokens, modelCalls, costUsd } = usage;
  const sum = inputTokens + outputTokens;
  const title = `${count(inputTokens)} in, ${count(outputTokens)} out, ${count(modelCalls)} requests`;
  const priced = costUsd === null ? "The price of its model is not known." : title;
  return (
    <>
      <Amount name="tokens" label="tokens" value={count(sum)} isNone={sum === 0} title={title} />
      <Amount name="cost" value={money(costUsd)} isNone={!costUsd} title={priced} />
    </>
  );
}

interface AmountProps {
  name: string;
  value: string;
  isNone: boolean;
  /** Beside it where there are no heads of columns. */
  label?: string;
  title?: string;
}

function Amount({ name, value, isNone, label = "", title }: AmountProps) {
  return (
    <Cell name={name} isNumber isNone={isNone} title={title}>
      {value}
      <span className="fleet-label"> {label}</span>
    </Cell>
  );
}
