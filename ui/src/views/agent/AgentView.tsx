import type { ComponentType } from "react";
import { Link } from "wouter";
import { Empty } from "../../parts/Messages";
import { useAddress, usePlace, useSelection } from "../../shell/addresses";
import { useWorld } from "../../state/page";
import { DefinitionTab } from "./DefinitionTab";
import { Header } from "./Header";
import { LogTab } from "./LogTab";
import { TABS, type Tab, useAgentAddress } from "./links";
import { MailTab } from "./MailTab";
import { MemoryTab } from "./MemoryTab";
import { SchedulesTab } from "./SchedulesTab";
import { TasksTab } from "./TasksTab";
import { ThreadsTab } from "./ThreadsTab";
import { UsageTab } from "./UsageTab";
import "./agent.css";

const CONTENTS: Record<Tab, ComponentType<{ agentId: string }>> = {
  tasks: TasksTab,
  threads: ThreadsTab,
  mail: MailTab,
  memory: MemoryTab,
  usage: UsageTab,
  schedules: SchedulesTab,
  log: LogTab,
  definition: DefinitionTab,
};

/** The page of one agent. */
export default function AgentView() {
  const { item: agentId = "" } = usePlace();
  const agent = useWorld((world) => world.agents.get(agentId));
  const [chosen] = useSelection("tab", "tasks");
  const tab: Tab = chosen in TABS ? (chosen as Tab) : "tasks";
  const Content = CONTENTS[tab];
  if (agent === undefined) return <Nobody agentId={agentId} />;
  return (
    <div className="agent-view">
      <Header key={agentId} agent={agent} />
      <TabLinks agentId={agentId} chosen={tab} />
      <section aria-label={TABS[tab]} className="agent-tab">
        <Content key={agentId} agentId={agentId} />
      </section>
    </div>
  );
}

function TabLinks({ agentId, chosen }: { agentId: string; chosen: Tab }) {
  const at = useAgentAddress();
  return (
    <nav className="agent-tabs" aria-label="About this agent">
      {(Object.keys(TABS) as Tab[]).map((tab) => (
        <Link
          key={tab}
          href={at(agentId, tab === "tasks" ? {} : { tab })}
          aria-current={tab === chosen ? "page" : undefined}
        >
          {TABS[tab]}
        </Link>
      ))}
    </nav>
  );
}

function Nobody({ agentId }: { agentId: string }) {
  const to = useAddress();
  return (
    <Empty title={`There is no agent '${agentId}' here.`}>
      It may not have been made yet at the time that is shown, or the address is wrong.{" "}
      <Link href={to()}>See all agents</Link>.
    </Empty>
  );
}
