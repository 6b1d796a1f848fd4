import { useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import type { MailRecord } from "../../client/client";
import { Icon } from "../../parts/Icon";
import { Markdown, visible } from "../../parts/Markdown";
import { At } from "../../parts/Times";
import { USER } from "../../projection/coordination";
import { useAddress, useLeading } from "../../shell/addresses";
import { act, notify } from "../../state/actions";
import { useAnswer } from "../../state/answers";
import { useHorizon } from "../../state/horizon";
import { useName } from "../../state/names";
import { useIsLive, usePage, useWorld, whyNotLive } from "../../state/page";
import { PriorityTag } from "./MailList";
import { conversation } from "./mails";
import { ReplyForm } from "./ReplyForm";

/** A mail with the conversation that it belongs to. All that is shown of it counts as read from here on. */
export function OpenMail({ mail, mails }: { mail: MailRecord; mails: readonly MailRecord[] }) {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const correspondent = mail.sender === USER ? mail.recipient : mail.sender;
  const sent = useAnswer(
    "mail.list",
    { sessionId, owner: correspondent, limit: 500 },
    (note) => note.name === "mail.sent" && note.params.sender === USER,
  );
  const until = useHorizon();
  const thread = conversation(mail.threadId, until, mails, sent.data?.mails ?? [], [mail]);
  useMarkedRead(thread);
  return (
    <>
      <MailHead mail={mail} />
      <div className="inbox-thread">
        {thread.map((each) => (
          <ThreadMail key={each.mailId} mail={each} isChosen={each.mailId === mail.mailId} />
        ))}
      </div>
      {mail.sender !== USER && <ReplyForm mail={mail} />}
    </>
  );
}

function useMarkedRead(mails: readonly MailRecord[]): void {
  const isLive = useIsLive();
  const unread = useWorld((world) =>
    mails
      .filter(({ mailId }) => world.inbox.get(mailId)?.isRead === false)
      .map(({ mailId }) => mailId)
      .join("\n"),
  );
  const marked = useRef(new Set<string>());
  useEffect(() => {
    if (!isLive || unread === "") return;
    for (const mailId of unread.split("\n")) {
      if (marked.current.has(mailId)) continue;
      marked.current.add(mailId);
      void act("mail.mark", { mailId, state: "read" });
    }
  }, [isLive, unread]);
}

function MailHead({ mail }: { mail: MailRecord }) {
  const isLive = useIsLive();
  const isInInbox = useWorld((world) => world.inbox.has(mail.mailId));
  const [isBusy, setIsBusy] = useState(false);
  const lead = useLeading();
  const to = useAddress();
  const archive = async () => {
    setIsBusy(true);
    const done = await act("mail.mark", { mailId: mail.mailId, state: "archived" });
    setIsBusy(false);
    if (done === undefined) return;
    notify("Archived.");
    lead(to("inbox"));
  };
  return (
    <header className="panes-head inbox-head">
      <Link href={to("inbox")} className="panes-back icon-button" aria-label="All mails">
        <Icon name="back" />
      </Link>
      <h2>
        <bdi>{visible(mail.subject) || "(no subject)"}</bdi>
      </h2>
      {mail.priority !== "normal" && <PriorityTag priority={mail.priority} />}
      <span className="space" />
      {isInInbox ? (
        <button
          type="button"
          disabled={!isLive || isBusy}
          title={isLive ? undefined : whyNotLive()}
          onClick={() => void archive()}
        >
          Archive
        </button>
      ) : (
        <span className="tag">archived</span>
      )}
    </header>
  );
}

function ThreadMail({ mail, isChosen }: { mail: MailRecord; isChosen: boolean }) {
  return (
    <article className="inbox-mail" data-chosen={isChosen}>
      <header className="inbox-line">
        <Correspondent id={mail.sender} />
        <span className="quiet">to</span>
        <Correspondent id={mail.recipient} />
        <span className="space" />
        <span className="quiet inbox-time">
          <At at={mail.createdAt} />
        </span>
      </header>
      <Markdown text={mail.body} />
    </article>
  );
}

function Correspondent({ id }: { id: string }) {
  const name = useName(id);
  const to = useAddress();
  if (id === USER) return <strong>you</strong>;
  return (
    <Link href={to("agents", id)} title={id}>
      <bdi>{visible(name)}</bdi>
    </Link>
  );
}
