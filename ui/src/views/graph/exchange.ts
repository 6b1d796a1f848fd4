import type { EventRecord, MailRecord, TaskRecord } from "../../client/client";
import { allAsOf, mailAsOf, taskAsOf } from "../../history/asOf";
import { withoutMarks } from "../../parts/marks";
import type { LinkKind } from "../../projection/world";

/** One thing that went from one to another. */
export interface Passed {
  readonly id: string;
  readonly kind: LinkKind;
  readonly at: number;
  readonly title: string;
  readonly text: string;
  /** What became of it. */
  readonly state: string;
  /** What came back, as far as something did. */
  readonly reply: string | null;
  readonly taskId: string | null;
}

interface Sources {
  readonly from: string;
  readonly to: string;
  /** The mails that `to` got, and those that `from` got. */
  readonly mails: readonly MailRecord[];
  readonly replies: readonly MailRecord[];
  /** The tasks of `to`. */
  readonly tasks: readonly TaskRecord[];
  readonly events: readonly EventRecord[];
  /** Nothing from after this moment is told. */
  readonly until: number;
}

/** What went from one to another, the newest first. A mail whose sender waited for the answer is a switch. */
export function passed({ from, to, mails, replies, tasks, events, until }: Sources): Passed[] {
  const replyOf = new Map<string, MailRecord>();
  for (const mail of replies) {
    if (mail.replyTo !== null && mail.createdAt <= until) replyOf.set(mail.replyTo, mail);
  }
  const all = [
    ...allAsOf(mails, until, mailAsOf)
      .filter((mail) => mail.sender === from)
      .map((mail) => ofMail(mail, replyOf.get(mail.mailId) ?? null)),
    ...allAsOf(tasks, until, taskAsOf)
      .filter((task) => isDelegated(task, from))
      .map(ofTask),
    ...events.filter((event) => event.sender === from && to !== from).map(ofEvent),
  ];
  return all.filter(({ at }) => at <= until).sort((a, b) => b.at - a.at);
}

function ofMail(mail: MailRecord, reply: MailRecord | null): Passed {
  const { mailId, subject, body, createdAt, state, taskId, awaited } = mail;
  const kind = awaited ? "switch" : "mail";
  return { id: mailId, kind, at: createdAt, title: subject, text: body, state, reply: reply?.body ?? null, taskId };
}

function isDelegated(task: TaskRecord, from: string): boolean {
  return task.kind === "delegated_task" && task.origin?.reportTo?.agentId === from;
}

function ofTask({ taskId, createdAt, prompt, state, result, error }: TaskRecord): Passed {
  const reply = result?.final ?? error?.message ?? null;
  const text = withoutMarks(prompt);
  const [title = ""] = text.split("\n", 1);
  return { id: taskId, kind: "delegation", at: createdAt, title, text, state, reply, taskId };
}

function ofEvent({ eventId, createdAt, name, data, woken, notified }: EventRecord): Passed {
  const state = `woke ${woken}, told ${notified}`;
  const text = data === null ? "" : JSON.stringify(data, null, 2);
  return { id: eventId, kind: "event", at: createdAt, title: name, text, state, reply: null, taskId: null };
}
