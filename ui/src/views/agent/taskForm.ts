import type { Params, Priority } from "../../client/client";
import { readNumber, readTime } from "../../parts/numbers";

/** A task as it is typed in. */
export interface TaskForm {
  readonly prompt: string;
  readonly priority: Priority;
  readonly threadId: string;
  readonly timeoutSeconds: string;
  readonly maxTokens: string;
  readonly maxCostUsd: string;
  /** Whether it goes into the task at work, before its next step. */
  readonly isForNextStep: boolean;
}

export const NO_TASK: TaskForm = {
  prompt: "",
  priority: "normal",
  threadId: "",
  timeoutSeconds: "",
  maxTokens: "",
  maxCostUsd: "",
  isForNextStep: false,
};

export type TaskParams = Omit<Params<"async.sendTask">, "sessionId" | "agentId">;

/** What is sent of the form, or a sentence that says what is wrong with it. */
export function taskParams(form: TaskForm): TaskParams | string {
  if (form.prompt.trim() === "") return "Say what it is to do.";
  const timeoutSeconds =
    form.timeoutSeconds.trim() === "" ? null : readTime(form.timeoutSeconds, { what: "The time", unit: "seconds" });
  if (typeof timeoutSeconds === "string") return timeoutSeconds;
  const maxTokens = amount(form.maxTokens);
  if (maxTokens === undefined || (maxTokens !== null && !Number.isInteger(maxTokens)))
    return "The tokens must be a whole number above 0, such as 50000.";
  const maxCostUsd = amount(form.maxCostUsd);
  if (maxCostUsd === undefined) return "The cost must be a number of dollars above 0, such as 0.50.";
  const threadId = form.threadId.trim();
  return {
    prompt: form.prompt,
    priority: form.priority,
    threadId: threadId === "" ? null : threadId,
    timeoutSeconds,
    ...(form.isForNextStep && { deliver: "next_step" as const }),
    budget: maxTokens === null && maxCostUsd === null ? null : { maxTokens, maxCostUsd },
  };
}

/** Null if nothing was typed, undefined if it is no number above 0. */
function amount(typed: string): number | null | undefined {
  if (typed.trim() === "") return null;
  const value = readNumber(typed);
  return Number.isFinite(value) && value > 0 ? value : undefined;
}
