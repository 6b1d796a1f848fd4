import { useMemo, useRef, useState } from "react";
import type { MailList, MailRecord, MailState, Notification } from "../../client/client";
import { allAsOf, mailAsOf } from "../../history/asOf";
import { AgentLink } from "../../parts/AgentLink";
import { Fact } from "../../parts/Fact";
import { useFirst } from "../../parts/First";
import { Markdown } from "../../parts/Markdown";
import { Empty, Loaded } from "../../parts/Messages";
import { Ago, At } from "../../parts/Times";
import { useSelection } from "../../shell/addresses";
import { useHorizon } from "../../state/horizon";
import { type Newest, useNewest } from "../../state/newest";
import { usePage } from "../../state/page";
import { Item, Older, StateFilter } from "./Listing";
import { CauseLink, MailLink, TaskLink, ThreadLink } from "./links";

const PAGE = 100;

type Box = "in" | "out";

/** What the agent was written and what it wrote, and what became of it. */
export function MailTab({ agentId }: { agentId: string }) {
  const [limit, setLimit] = useState(PAGE);
  const [box, setBox] = useSelection("box", "in");
  const [chosen, setState] = useSelection("state");
  const [opened, open] = useSelection("mail");
  const isSent = box === "out";
  const answer = useBox(agentId, isSent ? "out" : "in", limit);
  const at = useHorizon();
  const isPast = at !== Number.POSITIVE_INFINITY;
  const state = isPast ? "" : chosen; // when a mail was answered or archived is not kept
  const all = answer.data?.mails;
  const mails = useMemo(() => allAsOf(all ?? [], at, mailAsOf), [all, at]);
  const shown = mails.filter((mail) => state === "" || mail.state === state);
  const including = shown.findIndex(({ mailId }) => mailId === opened);
  const { first, more } = useFirst(shown, { step: PAGE * 2, including });
  const isMissing = opened !== "" && all !== undefined && !mails.some(({ mailId }) => mailId === opened);
  return (
    <>
      <div className="view-head">
        <label className="agent-filter">
          Mails{" "}
          <select value={isSent ? "out" : "in"} onChange={(event) => setBox(event.target.value)}>
            <option value="in">received</option>
            <option value="out">sent</option>
          </select>
        </label>
        {!isPast && <StateFilter states={STATES} value={state} onChange={setState} />}
      </div>
      {isMissing && (
        <p className="quiet">The mail {opened} is not among these: it may be older, or in the other box.</p>
      )}
      <Loaded answer={answer}>
        {() =>
          shown.length === 0 && answer.isLoading ? (
            <p className="loading">Loading…</p>
          ) : shown.length === 0 ? (
            <NoMail isFiltered={mails.length > 0} isSent={isSent} />
          ) : (
            <ul className="agent-list">
              {first.map((mail) => (
                <MailItem
                  key={mail.mailId}
                  mail={mail}
                  whom={isSent ? `to ${mail.recipient}` : mail.sender}
                  state={isPast ? (mail.readAt === null ? "unread" : "read") : mail.state}
                  isOpen={mail.mailId === opened}
                  onToggle={() => open(mail.mailId === opened ? "" : mail.mailId)}
                />
              ))}
            </ul>
          )
        }
      </Loaded>
      {more}
      <Older newest={answer} what="mails" onMore={() => setLimit(limit * 2)} />
    </>
  );
}

const STATES: readonly MailState[] = ["queued", "delivered", "read", "replied", "archived", "dead"];

function NoMail({ isFiltered, isSent }: { isFiltered: boolean; isSent: boolean }) {
  if (isFiltered) return <Empty title="No mail in this state among those that were loaded." />;
  return (
    <Empty title={isSent ? "It has written no mail yet." : "It was written no mail yet."}>
      Agents write to each other by themselves; you can write to them from your inbox.
    </Empty>
  );
}

/** One of the two boxes of an agent, asked anew when there is another mail in it or one comes into another state. */
function useBox(agentId: string, box: Box, limit: number): Newest<MailList> {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const params = { sessionId, owner: agentId };
  const known = useRef<readonly MailRecord[]>([]);
  const bounds = { wanted: limit, refreshOn: (note: Notification) => changesMail(note, agentId, known.current) };
  const received = useNewest("mail.list", box === "in" ? params : null, bounds);
  const sent = useNewest("mail.listSent", box === "out" ? params : null, bounds);
  const answer = box === "in" ? received : sent;
  known.current = answer.data?.mails ?? [];
  return answer;
}

/** Whether there is another mail from or to the agent, or one of these has come into another state. */
function changesMail(note: Notification, agentId: string, known: readonly MailRecord[]): boolean {
  if (note.name === "mail.sent") return note.params.recipient === agentId || note.params.sender === agentId;
  if (note.name !== "mail.state_changed") return false;
  return known.some(({ mailId }) => mailId === note.params.mailId);
}

interface MailItemProps {
  mail: MailRecord;
  whom: string;
  state: string;
  isOpen: boolean;
  onToggle: () => void;
}

function MailItem({ mail, whom, state, isOpen, onToggle }: MailItemProps) {
  const line = (
    <>
      <span className="tag" data-mail={state}>
        {state}
      </span>
      <span className="agent-row-title ellipsis" dir="auto">
        <span className="quiet">{whom}: </span>
        {mail.subject || "(no subject)"}
      </span>
      <span className="agent-row-facts quiet">
        {mail.priority !== "normal" && <span className="tag">{mail.priority}</span>}
        {mail.awaited && <span className="tag">awaited</span>}
        <Ago at={mail.createdAt} />
      </span>
    </>
  );
  return (
    <Item isOpen={isOpen} onToggle={onToggle} line={line}>
      {isOpen && <MailDetails mail={mail} />}
    </Item>
  );
}

function MailDetails({ mail }: { mail: MailRecord }) {
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
            <MailLink owner={mail.sender} mailId={mail.replyTo} />
          </Fact>
        )}
        <Fact name="Cause">
          <CauseLink cause={mail.cause} agentId={mail.recipient} taskAgentId={mail.sender} />
        </Fact>
        <Fact name="Thread">
          <ThreadLink agentId={mail.recipient} threadId={mail.threadId} />
        </Fact>
        <Fact name="Id">
          <code>{mail.mailId}</code>
        </Fact>
      </dl>
      <Markdown text={mail.body} />
    </div>
  );
}
