import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { AgentLink } from "../../parts/AgentLink";
import { Problem } from "../../parts/Messages";
import { Since } from "../../parts/Times";
import type { PendingApproval } from "../../projection/world";
import { useAddress } from "../../shell/addresses";
import { act, notify } from "../../state/actions";
import { useAnswer } from "../../state/answers";
import { useIsLive, usePage, useWorld, whyNotLive } from "../../state/page";
import { Call } from "./Call";

interface PendingProps {
  readonly approval: PendingApproval;
  readonly isMarked: boolean;
}

/** One call that waits for a decision. While it has the focus, A allows it and R leads to refusing it. */
export function Pending({ approval, isMarked }: PendingProps) {
  const { approvalId, agentId, taskId, tool, digest, at } = approval;
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const asked = useAnswer("approval.get", { sessionId, approvalId });
  const record = asked.data; // nobody can allow what they have not seen
  const address = useAddress();
  const isLive = useIsLive();
  const summary = useWorld((world) => world.tasks.get(taskId)?.summary);
  const [reason, setReason] = useState("");
  const [isDeciding, setIsDeciding] = useState(false);
  const card = useRef<HTMLElement>(null);
  const why = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (isMarked) card.current?.scrollIntoView({ block: "nearest" });
  }, [isMarked]);

  const decide = async (isAllowed: boolean) => {
    setIsDeciding(true);
    const done = isAllowed
      ? await act("approval.approve", { approvalId, digest, reason })
      : await act("approval.refuse", { approvalId, reason });
    setIsDeciding(false);
    if (done) notify(isAllowed ? `${tool} is allowed and runs.` : `${tool} is refused, and ${agentId} is told so.`);
  };
  const canDecide = isLive && !isDeciding;
  const isSame = record === undefined || record.digest === digest;
  const canAllow = canDecide && record !== undefined && isSame;
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== card.current || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "a" && canAllow) void decide(true);
    else if (event.key === "r") why.current?.focus();
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") focusNext(card.current, event.key === "ArrowDown");
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <article
      ref={card}
      className="card approvals-card"
      data-marked={isMarked}
      aria-label={`${tool} of ${agentId}`}
      aria-keyshortcuts="A R"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the cards are gone through with the arrow keys
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      <header className="approvals-head">
        <h2 className="mono">{tool}</h2>
        <span>
          of <AgentLink agentId={agentId} />
        </span>
        <span className="quiet">
          waits for <Since at={at} />
        </span>
        <span className="space" />
        <Link href={`${address("agents", agentId)}?task=${encodeURIComponent(taskId)}`}>{summary || "Its task"}</Link>
      </header>
      {record !== undefined && <Call text={record.arguments} digest={record.digest} />}
      {asked.isLoading && <p className="loading">Loading the arguments…</p>}
      {asked.error !== null && <Problem error={asked.error} onRetry={asked.again} />}
      {!isSame && <p role="alert">The call is not the one that was announced: look at it again before you decide.</p>}
      <form
        className="approvals-decision"
        onSubmit={(event) => {
          event.preventDefault();
          void decide(false);
        }}
      >
        <input
          ref={why}
          aria-label={`Reason for the decision on ${tool}`}
          placeholder="Reason (the agent is told)"
          value={reason}
          disabled={!canDecide}
          onChange={(event) => setReason(event.target.value)}
        />
        <button
          type="button"
          className="primary"
          disabled={!canAllow}
          title={isLive ? "Allow this call exactly as it is (A)" : whyNotLive()}
          onClick={() => void decide(true)}
        >
          Approve
        </button>
        <button
          type="submit"
          className="danger"
          disabled={!canDecide}
          title={isLive ? "The call does not run, and its model continues (R)" : whyNotLive()}
        >
          Refuse
        </button>
      </form>
    </article>
  );
}

function focusNext(card: HTMLElement | null, isDown: boolean): void {
  const cards = [...document.querySelectorAll<HTMLElement>(".approvals-card")];
  const next = card === null ? undefined : cards[cards.indexOf(card) + (isDown ? 1 : -1)];
  next?.focus();
}
