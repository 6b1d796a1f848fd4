import { Link } from "wouter";
import { AgentLink } from "../../parts/AgentLink";
import { USER } from "../../projection/coordination";
import { useAddress } from "../../shell/addresses";

/** The tabs of an agent's page by what the address calls them. */
export const TABS = {
  tasks: "Tasks",
  threads: "Threads",
  mail: "Mailbox",
  memory: "Memory",
  usage: "Usage",
  schedules: "Schedules",
  log: "Log",
  definition: "Definition",
} as const;

export type Tab = keyof typeof TABS;

/** Addresses on the pages of agents: `at(agentId, { tab: "mail", mail: id })`. */
export function useAgentAddress(): (agentId: string, query?: Record<string, string>) => string {
  const to = useAddress();
  return (agentId, query = {}) => {
    const search = new URLSearchParams(query).toString();
    return search === "" ? to("agents", agentId) : `${to("agents", agentId)}?${search}`;
  };
}

/** Where the limits of an agent are changed. */
export function useLimitsAddress(): (agentId: string) => string {
  const to = useAddress();
  return (agentId) => `${to("limits")}?${new URLSearchParams({ agent: agentId })}`;
}

export function TaskLink({ agentId, taskId, children }: { agentId: string; taskId: string; children?: string }) {
  const at = useAgentAddress();
  return (
    <Link href={at(agentId, { task: taskId })} className={children ? "" : "mono"}>
      {children ?? taskId}
    </Link>
  );
}

/** A mail in the box of whoever received it. */
export function MailLink({ owner, mailId }: { owner: string; mailId: string }) {
  const at = useAgentAddress();
  const to = useAddress();
  const address = owner === USER ? to("inbox", mailId) : at(owner, { tab: "mail", mail: mailId });
  return (
    <Link href={address} className="mono">
      {mailId}
    </Link>
  );
}

/** A conversation of an agent; the user has none that could be shown. */
export function ThreadLink({ agentId, threadId }: { agentId: string; threadId: string }) {
  const at = useAgentAddress();
  if (agentId === USER) return <code>{threadId}</code>;
  return (
    <Link href={at(agentId, { tab: "threads", thread: threadId })} className="mono">
      {threadId}
    </Link>
  );
}

/** What something came from, as the log names it: `mail:ID`, `task:ID`, `schedule:ID`, `event:ID`, a person. */
export function CauseLink({ cause, agentId, taskAgentId }: { cause: string; agentId: string; taskAgentId?: string }) {
  const at = useAgentAddress();
  const to = useAddress();
  const [kind = "", ...rest] = cause.split(":");
  const id = rest.join(":");
  if (id === "") return <span>{cause || "unknown"}</span>;
  if (kind === "mail") return <Link href={at(agentId, { tab: "mail", mail: id })}>mail {id}</Link>;
  if (kind === "task" && taskAgentId !== undefined) return <Link href={at(taskAgentId, { task: id })}>task {id}</Link>;
  if (kind === "agent") return <AgentLink agentId={id} />;
  if (kind === "schedule") return <Link href={to("schedules", id)}>schedule {id}</Link>;
  if (kind === "event") return <Link href={to("events", id)}>event {id}</Link>;
  return (
    <span>
      {kind} {id}
    </span>
  );
}
