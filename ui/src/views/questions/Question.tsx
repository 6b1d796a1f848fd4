import { type FormEvent, useEffect, useMemo, useRef, useState } from "react";
import { Link } from "wouter";
import type { QuestionRecord } from "../../client/client";
import { RpcError } from "../../client/errors";
import { AgentLink } from "../../parts/AgentLink";
import { LongText } from "../../parts/LongText";
import { Problem } from "../../parts/Messages";
import { Since, Until } from "../../parts/Times";
import type { PendingQuestion } from "../../projection/world";
import { useAddress } from "../../shell/addresses";
import { attempt, notify } from "../../state/actions";
import { useAnswer } from "../../state/answers";
import { useIsLive, usePage, useWorld, whyNotLive } from "../../state/page";
import { Field } from "./Field";
import { answerIn, emptyForm, type Filled, fieldsOf } from "./form";
import "./questions.css";

/** What an agent asks, with the form of the answer. What does not fit stays, with what is wrong beside it. */
export function Question({ question, isMarked = false }: { question: PendingQuestion; isMarked?: boolean }) {
  const { questionId, agentId, taskId, at } = question;
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const deadlineAt = useWorld((world) => world.waits.get(questionId)?.deadlineAt ?? null);
  const asked = useAnswer("question.get", { sessionId, questionId });
  const address = useAddress();
  const card = useRef<HTMLElement>(null);
  useEffect(() => {
    if (isMarked) card.current?.scrollIntoView({ block: "nearest" });
  }, [isMarked]);
  return (
    <article ref={card} className="card questions-card" data-marked={isMarked} aria-label={`Question of ${agentId}`}>
      <header className="questions-head">
        <AgentLink agentId={agentId} />
        <span className="quiet">
          waits for <Since at={at} />
          {deadlineAt !== null && (
            <>
              , asks <Until at={deadlineAt} /> no more
            </>
          )}
        </span>
        <span className="space" />
        <Link href={`${address("agents", agentId)}?task=${encodeURIComponent(taskId)}`}>Its task</Link>
      </header>
      <LongText text={asked.data?.question ?? question.question} />
      {asked.isLoading && <p className="loading">Loading the form…</p>}
      {asked.error !== null && <Problem error={asked.error} onRetry={asked.again} />}
      {asked.data !== undefined && <Form record={asked.data} />}
    </article>
  );
}

function Form({ record }: { record: QuestionRecord }) {
  const { questionId, agentId, schema } = record;
  const isLive = useIsLive();
  const fields = useMemo(() => fieldsOf(schema), [schema]);
  const [filled, setFilled] = useState<Filled>(() => emptyForm(fields));
  const [reason, setReason] = useState("");
  const [isSending, setIsSending] = useState(false);
  const [wrong, setWrong] = useState<Wrong>(FINE);
  const canSend = isLive && !isSending;

  const send = async (call: () => Promise<unknown>, done: string) => {
    setIsSending(true);
    setWrong(FINE);
    try {
      await call();
      notify(done);
    } catch (error) {
      setWrong(wrongOf(error as Error));
    } finally {
      setIsSending(false);
    }
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const answer = answerIn(fields, filled);
    if (canSend) void send(() => attempt("question.answer", { questionId, answer }), `${agentId} has your answer.`);
  };
  const refuse = () =>
    void send(() => attempt("question.refuse", { questionId, reason }), `${agentId} is told that you do not answer.`);
  return (
    <form className="questions-form" noValidate onSubmit={submit}>
      {fields.map((field) => (
        <Field
          key={field.name}
          field={field}
          typed={filled.get(field.name) ?? ""}
          complaint={wrong.fields[field.name]}
          isDisabled={!canSend}
          onType={(typed) => setFilled(new Map(filled).set(field.name, typed))}
        />
      ))}
      {wrong.sentence !== "" && <p role="alert">{wrong.sentence}</p>}
      <div className="questions-foot">
        <input
          aria-label="Reason for not answering"
          placeholder="Reason (if you do not want to answer)"
          value={reason}
          disabled={!canSend}
          onChange={({ target }) => setReason(target.value)}
        />
        <button type="button" className="danger" disabled={!canSend} onClick={refuse}>
          Do not answer
        </button>
        <button type="submit" className="primary" disabled={!canSend} title={isLive ? undefined : whyNotLive()}>
          Answer
        </button>
      </div>
    </form>
  );
}

interface Wrong {
  readonly sentence: string;
  readonly fields: Readonly<Record<string, string>>;
}

const FINE: Wrong = { sentence: "", fields: {} };

/** What is wrong with which field, as the server said it, or why it was not heard at all. */
function wrongOf(error: Error): Wrong {
  const fields = error instanceof RpcError ? error.data.fields : undefined;
  return { sentence: error.message, fields: (fields as Wrong["fields"] | undefined) ?? {} };
}
