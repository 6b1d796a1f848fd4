import type { StepRecord } from "../../client/client";
import { count, words } from "../../parts/format";
import { Folded } from "./Folded";

/** Where a conversation was made shorter for its model: how much, why, and what stands for the part before. */
export function CompactionDivider({ step }: { step: StepRecord }) {
  const made = step.compaction;
  if (made === null) return null;
  const before = `${count(made.tokensBefore)} tokens`;
  if (made.kind === null)
    return (
      <p className="agent-divider quiet">
        {step.state === "started" ? `${before} are being made shorter …` : `${before} could not be made shorter.`}
      </p>
    );
  const said = [made.first, ...made.said].filter((text) => text !== "").join("\n\n");
  return (
    <section className="agent-divider" aria-label="Made shorter">
      <p className="quiet">
        <strong>Made shorter</strong> ({words(made.kind)}, {words(made.reason)}): {before} became{" "}
        {count(made.tokensAfter)} of {count(made.window)}. Everything is kept in the journal.
      </p>
      {made.problem !== "" && <p className="agent-error">There is no summary, since {made.problem}.</p>}
      <Folded title="Summary" text={made.summary} />
      <Folded title="Kept word for word" text={said} />
      <Folded title="How things stood" text={made.card} />
      <Folded title="Its notes" text={made.notes} />
    </section>
  );
}
