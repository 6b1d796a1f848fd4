import type { DeadLetters, MailRecord, TaskRecord } from "../../client/client";

/** Something that could not be done: a task, the mail that it was for, or both. */
export interface Letter {
  /** The task that is taken up again, or the mail if there is none. */
  readonly id: string;
  readonly agentId: string;
  readonly task: TaskRecord | null;
  readonly mail: MailRecord | null;
  readonly at: number;
  readonly title: string;
  /** Why, as a sentence. */
  readonly why: string;
  readonly code: string;
}

/** The dead letters that there were at that time, the newest first. A task and the mail that it was for are one. */
export function lettersOf({ tasks, mails }: DeadLetters, until: number): Letter[] {
  const mailOf = new Map(mails.map((mail) => [mail.mailId, mail]));
  const letters: Letter[] = [];
  for (const task of tasks) {
    const mail = mailOf.get(task.mailId ?? "") ?? null;
    if (mail !== null) mailOf.delete(mail.mailId);
    letters.push(ofTask(task, mail));
  }
  for (const mail of mailOf.values()) letters.push(ofMail(mail));
  return letters.filter(({ at }) => at <= until).sort((a, b) => b.at - a.at);
}

function ofTask(task: TaskRecord, mail: MailRecord | null): Letter {
  const { taskId, agentId, prompt, error, finishedAt, createdAt } = task;
  return {
    id: taskId,
    agentId,
    task,
    mail,
    at: finishedAt ?? createdAt,
    title: mail?.subject || firstLine(prompt),
    why: error?.message ?? "It ended without saying why.",
    code: error?.code ?? "",
  };
}

function ofMail(mail: MailRecord): Letter {
  const why = "The mail could not be handled, and the task that had it is no longer listed.";
  const common = { agentId: mail.recipient, task: null, mail, at: mail.createdAt, title: mail.subject, why, code: "" };
  return { id: mail.taskId ?? mail.mailId, ...common };
}

function firstLine(text: string): string {
  return text.trim().split("\n", 1)[0] ?? "";
}

/** Whether it can be taken up again or dismissed: a mail without a task cannot. */
export function canSettle({ task, mail }: Letter): boolean {
  return task !== null || (mail !== null && mail.taskId !== null);
}

export function matching(letters: readonly Letter[], agentId: string, query: string): Letter[] {
  const wanted = query.trim().toLowerCase();
  return letters.filter(
    (letter) =>
      (agentId === "" || letter.agentId === agentId) &&
      (wanted === "" ||
        [letter.title, letter.why, letter.code, letter.task?.prompt ?? "", letter.mail?.body ?? ""].some((text) =>
          text.toLowerCase().includes(wanted),
        )),
  );
}
