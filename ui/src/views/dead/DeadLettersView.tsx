import { useMemo, useRef, useState } from "react";
import type { Notification } from "../../client/client";
import { useActing } from "../../parts/acting";
import { Confirm } from "../../parts/Dialog";
import { Empty, Loaded } from "../../parts/Messages";
import { useSettling } from "../../parts/settling";
import { usePlace, useSelectedIds, useSelection } from "../../shell/addresses";
import { act, notify } from "../../state/actions";
import { useAnswer } from "../../state/answers";
import { useHorizon } from "../../state/horizon";
import { usePage } from "../../state/page";
import { LetterCard } from "./LetterCard";
import { canSettle, type Letter, lettersOf, matching } from "./letters";
import "./dead.css";

const PAGE = 100;
const CHANGING: ReadonlySet<string> = new Set([
  "async.task.error",
  "async.task.dismissed",
  "async.task.queued",
  "async.task.started",
]);

/** The tasks and mails that could not be done and wait for a person. */
export default function DeadLettersView() {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const until = useHorizon();
  const answer = useAnswer("task.deadLetters", { sessionId }, changesLetters);
  return (
    <>
      {until < Number.POSITIVE_INFINITY && (
        <p className="quiet">What was taken up again or dismissed since then is no longer listed.</p>
      )}
      <Loaded answer={answer}>{(dead) => <Letters letters={lettersOf(dead, until)} />}</Loaded>
    </>
  );
}

function changesLetters(note: Notification): boolean {
  if (note.name === "mail.state_changed") return note.params.state === "dead" || note.params.state === "delivered";
  return CHANGING.has(note.name);
}

function Letters({ letters }: { letters: readonly Letter[] }) {
  const { disabled, title } = useActing();
  const [agentId, setAgentId] = useSelection("agent");
  const [query, setQuery] = useSelection("q");
  const { item } = usePlace();
  const [opened, open] = useSelection("open", item ?? "");
  const [chosenIds, setChosen] = useSelectedIds("chosen");
  const [most, setMost] = useState(PAGE);
  const [asking, setAsking] = useState<readonly Letter[] | null>(null);
  const [dismissing, setDismissing] = useState<readonly Letter[] | null>(null);
  const { busy, retry, dismiss } = useDoingAll();
  const list = useRef<HTMLUListElement>(null);
  useSettling(list);
  const agents = useMemo(() => [...new Set(letters.map((letter) => letter.agentId))].sort(), [letters]);
  const shown = matching(letters, agentId, query);
  const chosen = shown.filter((letter) => chosenIds.has(letter.id) && canSettle(letter));
  const able = shown.filter(canSettle);
  const choose = (id: string) => {
    const after = new Set(chosen.map((letter) => letter.id));
    if (!after.delete(id)) after.add(id);
    setChosen(after);
  };
  const canAct = !disabled && busy.size === 0;
  return (
    <>
      <div className="view-head">
        <h1>Dead letters</h1>
        <span className="quiet" role="status">
          {letters.length === 0 ? "none" : `${letters.length} ${letters.length === 1 ? "waits" : "wait"} for you`}
        </span>
        <span className="space" />
        {letters.length > 0 && (
          <>
            <input
              type="search"
              className="dead-find"
              aria-label="Find"
              placeholder="Find"
              value={query}
              onChange={(event) => setQuery(event.target.value)}
            />
            <select aria-label="Of which agent" value={agentId} onChange={(event) => setAgentId(event.target.value)}>
              <option value="">All agents</option>
              {[...new Set([...agents, ...(agentId === "" ? [] : [agentId])])].map((id) => (
                <option key={id}>{id}</option>
              ))}
            </select>
            <button
              type="button"
              disabled={!canAct || chosen.length === 0}
              title={title}
              onClick={() => {
                setChosen([]);
                void retry(chosen);
              }}
            >
              Retry chosen ({chosen.length})
            </button>
            <button
              type="button"
              disabled={!canAct || chosen.length === 0}
              title={title}
              onClick={() => setDismissing(chosen)}
            >
              Dismiss chosen ({chosen.length})
            </button>
            <button type="button" disabled={!canAct || able.length === 0} title={title} onClick={() => setAsking(able)}>
              Retry all ({able.length})
            </button>
          </>
        )}
      </div>
      {shown.length === 0 && <Nothing isFiltered={letters.length > 0} />}
      <ul ref={list} className="cards">
        {shown.slice(0, most).map((letter) => (
          <li key={letter.id}>
            <LetterCard
              letter={letter}
              isOpen={opened === letter.id}
              isChosen={chosenIds.has(letter.id)}
              isBusy={busy.has(letter.id)}
              onOpen={(isOpen) => (isOpen ? open(letter.id) : opened === letter.id && open(""))}
              onChoose={() => choose(letter.id)}
              onRetry={() => void retry([letter])}
              onDismiss={() => setDismissing([letter])}
            />
          </li>
        ))}
      </ul>
      {shown.length > most && (
        <button type="button" onClick={() => setMost(most + PAGE)}>
          Show more of {shown.length}
        </button>
      )}
      {dismissing !== null && (
        <Confirm
          title={dismissing.length === 1 ? "Dismiss this task?" : `Dismiss ${dismissing.length} tasks?`}
          action="Dismiss"
          onConfirm={() => {
            setChosen([]);
            void dismiss(dismissing);
          }}
          onClose={() => setDismissing(null)}
        >
          What is dismissed leaves this list, and its mail is archived. Nothing is deleted: it stays among the tasks of
          its agent, and can be retried there.
        </Confirm>
      )}
      {asking !== null && (
        <Confirm
          title={`Retry ${asking.length} tasks?`}
          action="Retry all"
          onConfirm={() => void retry(asking)}
          onClose={() => setAsking(null)}
        >
          Each resumes at the step where it ended. Their model requests cost again what they cost.
        </Confirm>
      )}
    </>
  );
}

function Nothing({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <Empty title="Nothing here matches what you look for." />;
  return (
    <Empty title="No dead letters.">
      A task that fails for good, or breaks its agent again and again, becomes a dead letter together with the mail that
      it was for: nothing is lost, and nothing is tried for ever. When you have fixed the cause, retry it from here or
      with <code>whisperer tasks retry TASK</code>. What no longer needs to be done can be dismissed, here or with{" "}
      <code>whisperer tasks dismiss TASK</code>; one that you leave alone does no harm.
    </Empty>
  );
}

/** Taking letters up again or off the list, one after the other. */
function useDoingAll() {
  const [busy, setBusy] = useState<ReadonlySet<string>>(new Set());
  const settle = async (method: "task.retry" | "task.dismiss", letters: readonly Letter[]) => {
    setBusy(new Set(letters.map(({ id }) => id)));
    let count = 0;
    for (const { id } of letters) {
      if (await act(method, { taskId: id })) count += 1;
    }
    setBusy(new Set());
    const done = method === "task.retry" ? "taken up again" : "dismissed";
    if (count > 0) notify(count === 1 ? `One task was ${done}.` : `${count} tasks were ${done}.`);
  };
  return {
    busy,
    retry: (letters: readonly Letter[]) => settle("task.retry", letters),
    dismiss: (letters: readonly Letter[]) => settle("task.dismiss", letters),
  };
}
