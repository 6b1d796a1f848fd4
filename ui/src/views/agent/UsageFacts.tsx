import type { Usage } from "../../client/client";
import { bytes, count, duration, money } from "../../parts/format";

/** What was used, in a line of figures. */
export function UsageFacts({ usage, label }: { usage: Usage; label: string }) {
  const figures: [string, string][] = [
    ["model calls", count(usage.modelCalls)],
    ["tool calls", count(usage.toolCalls)],
    ["tokens in", count(usage.inputTokens)],
    ["of them cached", cached(usage)],
    ["tokens out", count(usage.outputTokens)],
    ["money", money(usage.costUsd)],
    ["time", duration(usage.wallSeconds)],
    ["processor time", duration(usage.cpuSeconds)],
    ["memory", bytes(usage.memoryBytes)],
    ["mails sent", count(usage.mailsSent)],
  ];
  if (usage.unpricedTokens > 0) figures.push(["tokens without a price", count(usage.unpricedTokens)]);
  return <Figures label={label} figures={figures} />;
}

/** How much of what was sent came out of the provider's cache. */
function cached({ cachedTokens, inputTokens }: Usage): string {
  const share = inputTokens > 0 ? Math.round((100 * cachedTokens) / inputTokens) : 0;
  return cachedTokens > 0 ? `${count(cachedTokens)} (${share} %)` : "0";
}

/** Figures side by side, each below its name. */
export function Figures({ label, figures }: { label: string; figures: readonly [string, string][] }) {
  return (
    <div>
      <p className="quiet">{label}</p>
      <dl className="agent-figures" aria-label={`Used ${label}`}>
        {figures.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
