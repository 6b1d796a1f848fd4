import type { MailRecord } from "../../client/client";
import { USER } from "../../projection/coordination";
import type { InboxMail } from "../../projection/world";

/** One line of the list. */
export type Line = Omit<InboxMail, "isRead"> & { readonly isRead: boolean };

/** The mails of the inbox, the newest first. */
export function inboxLines(inbox: ReadonlyMap<string, InboxMail>): Line[] {
  return [...inbox.values()].reverse().sort((one, other) => other.at - one.at);
}

/** The archived mails that there were at that time, the newest first: those of then that are not in its inbox. */
export function archivedLines(
  mails: readonly MailRecord[],
  inbox: ReadonlyMap<string, InboxMail>,
  until: number,
): Line[] {
  return mails
    .filter(({ mailId, state, createdAt }) => state === "archived" && createdAt <= until && !inbox.has(mailId))
    .map(({ mailId, threadId, sender, subject, priority, createdAt }) => {
      return { mailId, threadId, sender, subject, priority, isRead: true, at: createdAt };
    });
}

/** The mails of a conversation up to that time, the oldest first. */
export function conversation(
  threadId: string,
  until: number,
  ...boxes: readonly (readonly MailRecord[])[]
): MailRecord[] {
  const found = new Map<string, MailRecord>();
  for (const mail of boxes.flat()) {
    const isOwn = mail.sender === USER || mail.recipient === USER;
    if (isOwn && mail.threadId === threadId && mail.createdAt <= until) found.set(mail.mailId, mail);
  }
  return [...found.values()].sort((one, other) => one.createdAt - other.createdAt || one.arrival - other.arrival);
}

/** The mail that is so many lines from this one; the first if this one is not there. */
export function neighbour(lines: readonly Line[], mailId: string | undefined, step: 1 | -1): string | undefined {
  const here = lines.findIndex((line) => line.mailId === mailId);
  if (here === -1) return lines[0]?.mailId;
  return lines[Math.min(lines.length - 1, Math.max(0, here + step))]?.mailId;
}
