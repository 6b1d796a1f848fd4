import type { MailRecord, StepRecord, TaskRecord, Usage } from "../../src/client/client";

/** Records as the server answers with them; what is not said is of no importance. */

const NOTHING_USED: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  cachedTokens: 0,
  costUsd: null,
  modelCalls: 0,
  toolCalls: 0,
  wallSeconds: 0,
  cpuSeconds: 0,
  memoryBytes: 0,
  mailsSent: 0,
  unpricedTokens: 0,
};

export function aTask(taskId: string, fields: Partial<TaskRecord> = {}): TaskRecord {
  return {
    sessionId: "default",
    taskId,
    agentId: "alice",
    threadId: taskId,
    kind: "user_prompt",
    prompt: "Do something",
    arrival: 1,
    cause: "user:user",
    priority: "normal",
    state: "completed",
    mailId: null,
    parentId: null,
    continuation: 0,
    attempts: 1,
    progressPercent: null,
    progressNote: "",
    result: null,
    error: null,
    usage: NOTHING_USED,
    createdAt: 10,
    startedAt: 11,
    finishedAt: fields.state === "running" || fields.state === "queued" ? null : 12,
    origin: null,
    notBefore: null,
    restarts: 0,
    dismissedAt: null,
    notes: null,
    parts: null,
    erasedAt: null,
    joinedStep: null,
    ...fields,
  };
}

/** A finished model request, unless it is made a tool call. */
export function aStep(fields: Partial<StepRecord> = {}): StepRecord {
  return {
    sessionId: "default",
    taskId: "t",
    number: 1,
    kind: "model",
    state: "done",
    attempt: 1,
    failures: 0,
    call: null,
    answer: {
      text: "",
      reasoning: "",
      toolCalls: [],
      readAs: [],
      usage: NOTHING_USED,
      finish: "stop",
      model: "scripted",
      provider: null,
      objection: "",
      excused: false,
    },
    result: null,
    error: null,
    retryAt: null,
    startedAt: 11,
    finishedAt: 12,
    requests: 1,
    requestSeconds: 1,
    outageSeconds: 0,
    compaction: null,
    model: "",
    said: null,
    ...fields,
  };
}

export function aMail(mailId: string, fields: Partial<MailRecord> = {}): MailRecord {
  return {
    sessionId: "default",
    mailId,
    threadId: mailId,
    sender: "bob",
    sequence: 1,
    recipient: "alice",
    subject: "Hello",
    body: "How are you?",
    arrival: 1,
    cause: "user:user",
    priority: "normal",
    replyTo: null,
    state: "read",
    taskId: null,
    createdAt: 10,
    readAt: null,
    awaited: false,
    origin: null,
    erasedAt: null,
    ...fields,
  };
}

export { NOTHING_USED };

/** Where a task comes from, with nothing stated. */
export function anOrigin(): TaskRecord["origin"] {
  return {
    rootId: null,
    deadlineAt: null,
    budget: null,
    reportTo: null,
    room: null,
    answers: null,
    outputSchema: null,
    quiet: false,
    nextStep: false,
    continuesCut: false,
  };
}
