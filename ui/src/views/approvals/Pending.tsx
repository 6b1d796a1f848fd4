import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { AgentLink } from "../../parts/AgentLink";
import { Problem } from "../../parts/Messages";
import { visible } from "../../parts/markdown/visible";
import { Since } from "../../parts/Times";
import type { PendingApproval } from "../../projection/world";
import { useAddress } from "../../shell/addresses";
import { act, notify } from "../../state/actions";
import { useAnswer } from "../../state/answers";
import { useIsLive, usePage, useWorld } from "../../state/page";
import { Call } from "./Call";
import { Decision } from "./Decision";
import { useKept } from "./kept";
import { Sign } from "./Sign";
import type { Outcome } from "./standing";

interface PendingProps {
  readonly approval: PendingApproval;
  readonly isMarked: boolean;
  /** What became of it; null while it waits. */
  readonly outcome: Outcome | null;
}

/** One call that waits for a decision. While it has the focus, A allows it and R leads to refusing it. */
export function Pending({ approval, isMarked, outcome }: PendingProps) {
  const { approvalId, agentId, taskId, tool, digest, at } = approval;
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const asked = useAnswer("approval.get", { sessionId, approvalId });
  const record = asked.data; // nobody can allow what they have not seen
  const address = useAddress();
  const isLive = useIsLive();
  const known = useWorld((world) => world.tasks.get(taskId)?.summary);
  const [summary, setSummary] = useState(known); // the task may end before the card goes
  if (known !== undefined && known !== summary) setSummary(known);
  const [reason, setReason] = useState("");
  const [isDeciding, setIsDeciding] = useState(false);
  const card = useRef<HTMLElement>(null);
  const why = useRef<HTMLInputElement>(null);
  const foot = useRef<HTMLDivElement>(null);
  const focus = useKept(card, foot, outcome !== null);
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
  const canDecide = isLive && !isDeciding && outcome === null;
  const isSame = record === undefined || record.digest === digest;
  const canAllow = canDecide && record !== undefined && isSame;
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== card.current || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "a" && !event.repeat && canAllow) void decide(true);
    else if (event.key === "r" && outcome === null) why.current?.focus();
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
      aria-keyshortcuts={outcome === null ? "A R" : undefined}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the cards are gone through with the arrow keys
      tabIndex={0}
      onKeyDown={onKeyDown}
      {...focus}
    >
      <header className="approvals-head">
        <h2 className="mono">{tool}</h2>
        <span>
          of <AgentLink agentId={agentId} />
        </span>
        {outcome === null && (
          <span className="quiet">
            waits for <Since at={at} />
          </span>
        )}
        <span className="space" />
        <Link href={`${address("agents", agentId)}?task=${encodeURIComponent(taskId)}`}>{summary || "Its task"}</Link>
      </header>
      {record !== undefined && <Call text={record.arguments} digest={record.digest} />}
      {asked.isLoading && <p className="loading">Loading the arguments…</p>}
      {asked.error !== null && <Problem error={asked.error} onRetry={asked.again} />}
      {!isSame && <p role="alert">The call is not the one that was announced: look at it again before you decide.</p>}
      <div ref={foot} className="approvals-foot">
        {outcome === null ? (
          <Decision
            tool={tool}
            input={why}
            reason={reason}
            canAllow={canAllow}
            canRefuse={canDecide}
            onReason={setReason}
            onDecide={decide}
          />
        ) : (
          <Told outcome={outcome} />
        )}
      </div>
    </article>
  );
}

/** What became of it, where the choice was. */
function Told({ outcome: { state, by, reason } }: { outcome: Outcome }) {
  return (
    <p className="approvals-told">
      <Sign state={state} /> {by !== "" && `by ${by}`}
      {reason !== "" && <span className="approvals-reason">{visible(reason)}</span>}
    </p>
  );
}

function focusNext(card: HTMLElement | null, isDown: boolean): void {
  const cards = [...document.querySelectorAll<HTMLElement>(".approvals-card")];
  const next = card === null ? undefined : cards[cards.indexOf(card) + (isDown ? 1 : -1)];
  next?.focus();
}
