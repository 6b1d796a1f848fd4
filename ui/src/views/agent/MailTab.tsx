import { useMemo, useState } from "react";
import { Link } from "wouter";
import type { MailRecord, Notification } from "../../client/client";
import { AgentLink } from "../../parts/AgentLink";
import { Markdown } from "../../parts/Markdown";
import { Empty, Loaded } from "../../parts/Messages";
import { Ago, At } from "../../parts/Times";
import { useSelection } from "../../shell/addresses";
import { useAnswer } from "../../state/answers";
import { usePage } from "../../state/page";
import { allAsOf, mailAsOf } from "./asOf";
import { useHorizon } from "./horizon";
import { CauseLink, TaskLink, useAgentAddress } from "./links";
import { Fact } from "./TaskDetails";

const PAGE = 100;

/** What the agent was written, and how far it has come with it. */
export function MailTab({ agentId }: { agentId: string }) {
  const [limit, setLimit] = useState(PAGE);
  const [state, setState] = useSelection("state");
  const [opened, open] = useSelection("mail");
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const answer = useAnswer("mail.list", { sessionId, owner: agentId, limit }, (note) => changesMail(note, agentId));
  const at = useHorizon();
  const all = answer.data?.mails;
  const mails = useMemo(() => allAsOf(all ?? [], at, mailAsOf), [all, at]);
  const shown = mails.filter((mail) => state === "" || mail.state === state);
  return (
    <>
      <div className="view-head">
        <label className="agent-filter">
          State{" "}
          <select value={state} onChange={(event) => setState(event.target.value)}>
            <option value="">all</option>
            {["queued", "delivered", "read", "replied", "archived", "dead"].map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      </div>
      <Loaded answer={answer}>
        {() =>
          shown.length === 0 ? (
            <Empty title={mails.length === 0 ? "No mail yet." : `No ${state} mail among those that were loaded.`}>
              {mails.length === 0 && "Agents write to each other by themselves; you can write from your inbox."}
            </Empty>
          ) : (
            <ul className="agent-list">
              {shown.map((mail) => (
                <MailItem
                  key={mail.mailId}
                  mail={mail}
                  isOpen={mail.mailId === opened}
                  onToggle={() => open(mail.mailId === opened ? "" : mail.mailId)}
                />
              ))}
            </ul>
          )
        }
      </Loaded>
      {all !== undefined && all.length >= limit && (
        <button type="button" className="agent-older" onClick={() => setLimit(limit * 2)}>
          Show older mails
        </button>
      )}
    </>
  );
}

/** Whether there is another mail of the agent, or one in another state. */
export function changesMail(note: Notification, agentId: string): boolean {
  if (note.name === "mail.sent") return note.params.recipient === agentId || note.params.sender === agentId;
  return note.name === "mail.state_changed";
}

function MailItem({ mail, isOpen, onToggle }: { mail: MailRecord; isOpen: boolean; onToggle: () => void }) {
  return (
    <li className="agent-item" data-open={isOpen}>
      <button type="button" className="agent-row" aria-expanded={isOpen} onClick={onToggle}>
        <span className="tag" data-mail={mail.state}>
          {mail.state}
        </span>
        <span className="agent-row-title ellipsis" dir="auto">
          <span className="quiet">{mail.sender}: </span>
          {mail.subject || "(no subject)"}
        </span>
        <span className="agent-row-facts quiet">
          {mail.priority !== "normal" && <span className="tag">{mail.priority}</span>}
          {mail.awaited && <span className="tag">awaited</span>}
          <Ago at={mail.createdAt} />
        </span>
      </button>
      {isOpen && <MailDetails mail={mail} />}
    </li>
  );
}

function MailDetails({ mail }: { mail: MailRecord }) {
  const at = useAgentAddress();
  return (
    <div className="agent-details">
      <dl className="agent-dl">
        <Fact name="From">
          <AgentLink agentId={mail.sender} />
        </Fact>
        <Fact name="To">
          <AgentLink agentId={mail.recipient} />
        </Fact>
        <Fact name="Sent">
          <At at={mail.createdAt} />
        </Fact>
        {mail.readAt !== null && (
          <Fact name="Read">
            <At at={mail.readAt} />
          </Fact>
        )}
        {mail.taskId !== null && (
          <Fact name="Handled in">
            <TaskLink agentId={mail.recipient} taskId={mail.taskId} />
          </Fact>
        )}
        {mail.replyTo !== null && (
          <Fact name="Reply to">
            <Link href={at(mail.sender, { tab: "mail", mail: mail.replyTo })}>{mail.replyTo}</Link>
          </Fact>
        )}
        <Fact name="Cause">
          <CauseLink cause={mail.cause} agentId={mail.recipient} taskAgentId={mail.sender} />
        </Fact>
        <Fact name="Thread">
          <Link href={at(mail.recipient, { tab: "threads", thread: mail.threadId })}>{mail.threadId}</Link>
        </Fact>
        <Fact name="Id">
          <code>{mail.mailId}</code>
        </Fact>
      </dl>
      <Markdown text={mail.body} />
    </div>
  );
}
