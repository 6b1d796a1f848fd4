import { useEffect, useMemo, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import type { MailRecord, Notification } from "../../client/client";
import { mailAsOf } from "../../history/asOf";
import { useActing } from "../../parts/acting";
import { Empty, Problem } from "../../parts/Messages";
import { USER } from "../../projection/coordination";
import { useAddress, usePlace, useSelection } from "../../shell/addresses";
import { areKeysTaken } from "../../shell/dialogState";
import { type Answered, useAnswer } from "../../state/answers";
import { useHorizon } from "../../state/horizon";
import { MOST_LOOKED } from "../../state/newest";
import { useIsPast, usePage, useWorld } from "../../state/page";
import { MailList } from "./MailList";
import { archivedLines, inboxLines, type Line, neighbour } from "./mails";
import { NewMail } from "./NewMail";
import { OpenMail } from "./OpenMail";
import "../../parts/panes.css";
import "./inbox.css";

const FIRST = 200;

function isOfUser({ name, params }: Notification): boolean {
  if (name === "mail.sent") return params.recipient === USER;
  return name === "mail.state_changed" && params.state === "archived";
}

export default function InboxView() {
  const { item: openId } = usePlace();
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const [show, setShow] = useSelection("show", "inbox");
  const isArchive = show === "archived";
  const [limit, setLimit] = useState(FIRST);
  const answer = useAnswer("mail.list", { sessionId, owner: USER, limit }, isOfUser);
  const last = useRef(answer.data?.mails);
  if (answer.data) last.current = answer.data.mails;
  const mails = last.current; // those that are there stay while more are on their way
  const lines = useLines(isArchive, mails);
  useStepping(lines, openId, isArchive);
  const hasMore = answer.data !== undefined && answer.data.mails.length >= limit;
  const { mail: opened, ...looking } = useMail(openId, mails, hasMore);
  return (
    <div className="panes inbox" data-open={openId !== undefined}>
      <h1 className="visually-hidden">Inbox</h1>
      <section className="panes-list" aria-label="Mails">
        <ListHead show={show} onShow={setShow} />
        <MailList lines={lines} openId={openId} isArchive={isArchive} />
        {isArchive && hasMore && (
          <button type="button" onClick={() => setLimit(limit * 4)}>
            Load older ones
          </button>
        )}
      </section>
      <section className="panes-open" aria-label="Mail" data-empty={opened === undefined}>
        {opened ? (
          <OpenMail key={opened.mailId} mail={opened} mails={mails ?? []} />
        ) : (
          <NotOpen openId={openId} answer={answer.error ? answer : looking.answer} isOver={looking.isOver} />
        )}
      </section>
    </div>
  );
}

/**
 * The mail that the address names, as it was at the time that is shown. If it is not among the newest, the older ones
 * are looked through for it, once.
 */
function useMail(openId: string | undefined, newest: readonly MailRecord[] | undefined, hasMore: boolean) {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const at = useHorizon();
  const listed = useMemo(() => newest?.find(({ mailId }) => mailId === openId), [newest, openId]);
  const [older, setOlder] = useState<{ openId: string; mail: MailRecord | undefined } | null>(null);
  const isAsked = older?.openId === openId;
  const isWanted = openId !== undefined && newest !== undefined && listed === undefined && hasMore && !isAsked;
  const answer = useAnswer("mail.list", isWanted ? { sessionId, owner: USER, limit: MOST_LOOKED } : null);
  if (isWanted && answer.data !== undefined) {
    setOlder({ openId, mail: answer.data.mails.find(({ mailId }) => mailId === openId) });
  }
  const found = listed ?? (isAsked ? older?.mail : undefined);
  const mail = useMemo(() => (found === undefined ? undefined : (mailAsOf(found, at) ?? undefined)), [found, at]);
  return { mail, answer, isOver: newest !== undefined && !isWanted };
}

function useLines(isArchive: boolean, mails: readonly MailRecord[] | undefined): readonly Line[] {
  const inbox = useWorld((world) => world.inbox);
  const until = useHorizon();
  return useMemo(
    () => (isArchive ? archivedLines(mails ?? [], inbox, until) : inboxLines(inbox)),
    [isArchive, mails, inbox, until],
  );
}

function ListHead({ show, onShow }: { show: string; onShow: (show: string) => void }) {
  const [isWriting, setIsWriting] = useState(false);
  const acting = useActing();
  return (
    <div className="panes-list-head">
      <span className="panes-title" aria-hidden="true">
        Inbox
      </span>
      <span className="space" />
      <select aria-label="Which mails" value={show} onChange={(event) => onShow(event.target.value)}>
        <option value="inbox">Inbox</option>
        <option value="archived">Archived</option>
      </select>
      <button type="button" {...acting} onClick={() => setIsWriting(true)}>
        New mail
      </button>
      {isWriting && <NewMail onClose={() => setIsWriting(false)} />}
    </div>
  );
}

interface NotOpenProps {
  openId: string | undefined;
  answer: Answered<unknown>;
  /** Whether it was looked for wherever it can be. */
  isOver: boolean;
}

function NotOpen({ openId, answer, isOver }: NotOpenProps) {
  const to = useAddress();
  const isPast = useIsPast();
  if (openId === undefined) {
    return (
      <Empty title="Choose a mail">
        With <kbd>j</kbd> and <kbd>k</kbd> you get to the next and the one before.
      </Empty>
    );
  }
  if (answer.error) return <Problem error={answer.error} onRetry={answer.again} />;
  if (!isOver) return <p className="loading">Loading…</p>;
  return (
    <Empty title={isPast ? "There was no such mail yet" : "There is no such mail"}>
      <Link href={to("inbox")}>See all mails</Link>
    </Empty>
  );
}

const PREFIX_MS = 1_000;

/** `j` and `k` open the next mail and the one before; but not right after `g`, which leads to other places. */
function useStepping(lines: readonly Line[], openId: string | undefined, isArchive: boolean): void {
  const [, go] = useLocation();
  const to = useAddress();
  const prefixAt = useRef(Number.NEGATIVE_INFINITY);
  useEffect(() => {
    const step = (event: KeyboardEvent) => {
      const isWriting = event.target instanceof Element && event.target.closest("input,textarea,select");
      if (isWriting || areKeysTaken() || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented)
        return;
      const isPrefixed = event.timeStamp - prefixAt.current < PREFIX_MS;
      prefixAt.current = event.key === "g" ? event.timeStamp : Number.NEGATIVE_INFINITY;
      if (isPrefixed || (event.key !== "j" && event.key !== "k")) return;
      const mailId = neighbour(lines, openId, event.key === "j" ? 1 : -1);
      if (mailId !== undefined && mailId !== openId) go(to("inbox", mailId) + (isArchive ? "?show=archived" : ""));
    };
    addEventListener("keydown", step);
    return () => removeEventListener("keydown", step);
  }, [lines, openId, isArchive, go, to]);
}
