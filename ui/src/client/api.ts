// Made from the types of the server by `python -m ai_whisperer.protocol.typescript`. Do not edit.

/** What an agent may do in a folder that it is granted. */
export type Access = "read" | "write";

/**
 * What an agent is, apart from what it is doing. `cut_answers` says what becomes of an answer that reached the length
 * which the model or `max_tokens` allows. `model` may name several, the one that is wanted first: the others are asked
 * while it cannot answer. `tools=None` grants the coordination tools and all that were provided; tools that reach the
 * machine or the network (`read_file`, `run_command`, …) have to be named. `folders` are the folders that it may use
 * beside its own, by the names that the session has for them; `working_folder` names the one of them that its paths are
 * relative to and that its programs run in, in place of its own. `network` are the hosts that its tools may talk to,
 * `"*"` for all public ones. `approve` names tools of which a person has to allow each call, whatever the tools say
 * themselves; a name that ends in `*` stands for all that begin so, `"*"` for all tools but those that touch only the
 * session. `subscribes` names the events that become a task of the agent; `"*"` stands for all. `output_schema` is the
 * JSON Schema that the answers to its tasks have to fit, unless a task has one of its own; it does not hold where the
 * agent talks, in mail and in chats.
 */
export interface AgentDefinition {
  name?: string;
  description?: string;
  prompt?: string;
  model?: string | string[];
  settings?: Record<string, unknown>;
  cut_answers?: CutAnswers;
  tools?: string[] | null;
  folders?: Record<string, Access>;
  working_folder?: string;
  network?: string[];
  approve?: string[];
  aliases?: string[];
  limits?: Limits;
  retry?: RetryPolicy;
  context?: ContextPolicy;
  supervision?: Supervision;
  subscribes?: string[];
  schedule?: ScheduleDefinition[];
  output_schema?: Record<string, unknown> | null;
}

/** An agent as it is, and its definition. */
export interface AgentDetails {
  agentId: string;
  status: AgentStatus;
  definition: AgentDefinition;
  ownTools: string[];
  createdAt: number;
  startedAt: number | null;
}

/** `idle`: has nothing to do. `active`: at least one of its tasks runs. */
export type AgentState = "active" | "idle" | "paused" | "sleeping" | "stopped";

/**
 * What an agent is doing. `currentTask` is the kind of the task that has run longest. It runs since `runningSince`, and
 * a step of it ended last at `lastStepAt`: one that hangs shows itself there. `lastActivityAt` is when a task of it
 * last began or ended, or a step of one ended; at first, when it was created. `waitingFor` names what its loops wait
 * for: agents, locks as `lock:name`, people as `approval:id` or `question:id`; `pausedFor` the resources that its tools
 * wait for, since others touch them now: it continues by itself. While there are `missingTools` the agent waits for
 * them: provide them with `give_tools`. One with a `pausedLimit` resumes when that limit is raised. `sleepingUntil` is
 * what the wall clock shows when the sleep is over: if that clock is set, it changes, unless the agent is
 * `sleepingByWallClock`, until just that time. While the task that has run longest waits to ask its model again,
 * `retryAt` says until when and `retryReason` why: the provider is down, say. `deadTasks` counts its tasks that failed
 * and wait for a person.
 */
export interface AgentStatus {
  agentId: string;
  state: AgentState;
  currentTask: string | null;
  queueSize: number;
  sleepingUntil: number | null;
  started: boolean;
  reason: string;
  unreadMail: number;
  runningTasks: string[];
  progressPercent: number | null;
  progressNote: string;
  tasks: number;
  usage: Usage;
  name: string;
  description: string;
  wakeEvents: string[];
  waitingFor: string[];
  pausedFor: string[];
  missingTools: string[];
  pausedLimit: string | null;
  runningSince: number | null;
  lastStepAt: number | null;
  lastActivityAt: number;
  sleepingByWallClock: boolean;
  retryAt: number | null;
  deadTasks: number;
  retryReason: string;
}

/**
 * What a finished model request brought. `provider` keeps what the provider wants to see again. `toolCalls` are those
 * that the model wrote as such. `readAs` are the calls that were read of the answer, where that is something else: they
 * were written as text, with another name, or with arguments that had to be repaired. `objection` is what the model is
 * told of an answer that does not fit the output schema of its task. One that was `excused`, since the task was retried
 * after it, no longer counts.
 */
export interface Answer {
  text: string;
  reasoning: string;
  toolCalls: ToolCall[];
  usage: Usage;
  finish: string;
  model: string;
  provider: string | null;
  readAs: ToolCall[];
  objection: string;
  excused: boolean;
}

/** An answer in its three channels; `output` is the value that it is, if its task has an output schema. */
export interface AnswerTold {
  analysis: string;
  commentary: string;
  final: string;
  output?: unknown;
}

/** What people are asked about: what waits for a decision with the oldest first, all else with the newest first. */
export interface ApprovalList {
  approvals: ApprovalRecord[];
}

/**
 * A tool call that a person is asked about. Its id is that of the step. `arguments` are exactly those that the call
 * runs with; `digest` names the tool with them.
 */
export interface ApprovalRecord {
  sessionId: string;
  approvalId: string;
  agentId: string;
  taskId: string;
  tool: string;
  arguments: string;
  digest: string;
  state: ApprovalState;
  requestedAt: number;
  decidedAt: number | null;
  decidedBy: string | null;
  reason: string;
}

/** `withdrawn`: the task ended first. `expired`: it ended because its time was over. */
export type ApprovalState = "approved" | "expired" | "pending" | "refused" | "withdrawn";

/**
 * An image or a file of a task or a message. `digest` is that of its content, which is kept once. `tokens` is about
 * what a model needs to read it.
 */
export interface Attachment {
  digest: string;
  mediaType: string;
  size: number;
  name: string;
  tokens: number;
}

/** An image or a file with its content. */
export interface AttachmentContent {
  digest: string;
  mediaType: string;
  size: number;
  name: string;
  data: string;
}

/** Where images and files were given, the newest first. */
export interface AttachmentList {
  attachments: AttachmentRecord[];
}

/** Where an image or a file was given: `owner` is `task:…` or `message:…`, `number` its place there, from 1. */
export interface AttachmentRecord {
  sessionId: string;
  owner: string;
  number: number;
  digest: string;
  mediaType: string;
  size: number;
  name: string;
  createdAt: number;
}

/** What a task may use together with everything that it causes. */
export interface Budget {
  maxTokens: number | null;
  maxCostUsd: number | null;
}

/** An answer in its three channels. `output` is the value that it is, if its task has an output schema. */
export interface ChannelResponse {
  analysis: string;
  commentary: string;
  final: string;
  output: unknown;
}

/**
 * The nodes by name. `waiting` is how many sessions have work and nobody yet; `ray` is set if Ray runs nodes. `unmet`
 * are the tags that some of those need and no node has that takes sessions: each time all that one needs.
 */
export interface ClusterStatus {
  clusterId: string;
  minVersion: string;
  nodes: NodeStatus[];
  waiting: number;
  ray: RayStatus | null;
  unmet: string[][];
}

/** Whether conversations that grow too long are made shorter: by themselves, or never. */
export type Compact = "auto" | "off";

/**
 * From where on a thread is shown as it was, and what stands for the part before. Each one stands for all that those
 * before it stood for, so that the last one of a thread is all that is needed. What is before `covered` is shown as its
 * head: `first`, the first prompt of the thread, and `said`, what the person said, word for word; then the `summary`
 * and the `card`, on which the runtime says how things stand, with `notes`, the agent's own as they were then: those
 * that were told before are not shown. The task in which `covered` lies began at `coveredAt`; `ties` are tasks that are
 * covered and began at the same instant. Results before `trimmed` are shown as one line, and later ones up to
 * `resultBytes` each; 0 stands for the usual. `steps` counts those that are covered, and `askedTokens` is the size to
 * come down to. While it is under way `kind` is None. `problem` says why there is no summary though one was wanted.
 * What strangers may have written is in an `untrusted` summary.
 */
export interface Compaction {
  reason: CompactionReason;
  window: number;
  askedTokens: number;
  tokensBefore: number;
  kind: CompactionKind | null;
  tokensAfter: number;
  steps: number;
  covered: Place | null;
  coveredAt: number;
  ties: string[];
  trimmed: Place | null;
  resultBytes: number;
  first: string;
  said: string[];
  summary: string;
  card: string;
  notes: string;
  files: string[];
  unknown: string[];
  untrusted: boolean;
  problem: string;
}

/** `trim`: old results are shown as one line, by the runtime. `summary`: a model wrote down what was said before. */
export type CompactionKind = "summary" | "trim";

/** `window`: the next request would be too long. `refused`: the provider said so. `asked`: a person wanted it. */
export type CompactionReason = "asked" | "refused" | "window";

/**
 * What two sessions have in common and what not. A is the first one, B the second. `partings` has the first difference
 * of each agent that differs, `first` the first one of all. `isSame`: agents answered, called and wrote the same. Of
 * calls and mails that one has alone, `callsOnlyInA` and the like have the first; `more` says how many are left out.
 */
export interface Comparison {
  isSame: boolean;
  first: Parting | null;
  partings: Parting[];
  sameAnswers: number;
  otherAnswers: number;
  callsOnlyInA: Unmatched[];
  callsOnlyInB: Unmatched[];
  mailsOnlyInA: Unmatched[];
  mailsOnlyInB: Unmatched[];
  more: number;
  spent: SpentByBoth;
  spentByAgent: SpentByBoth[];
}

/**
 * What a model is shown of a conversation that has grown too long for it. `window` is how many tokens the model can
 * take with its answer; without it, what is known of the model. `model` writes the summaries, without it the agent's
 * own. Of the last answers, so many as `keep` says are kept with all their results.
 */
export interface ContextPolicy {
  compact?: Compact;
  window?: number | null;
  model?: string;
  keep?: number;
}

/**
 * What the model of an agent would be shown of a thread now, in tokens by an estimate. Beyond `limitTokens` the
 * conversation is made shorter before the next request. `windowKnown` says whether the window is stated or known of the
 * model, rather than assumed. `cachedShare` is how much of what the agent's model was sent so far came out of the
 * provider's cache, from 0 to 1.
 */
export interface ContextReport {
  agentId: string;
  threadId: string;
  tokens: number;
  window: number;
  limitTokens: number;
  windowKnown: boolean;
  compacts: boolean;
  turns: number;
  tasks: number;
  cachedShare: number;
  compaction: Compaction | null;
  compactedIn: string | null;
}

/** What becomes of an answer that its length has cut: another task continues it, or it is the answer as it is. */
export type CutAnswers = "continue" | "final";

/** What could not be done and waits for a person: `retry_task` takes it up again, `dismiss_task` off the list. */
export interface DeadLetters {
  tasks: TaskRecord[];
  mails: MailRecord[];
}

/** When a message to a conversation is heard: in its turn, or before the next step of the task at work there. */
export type Deliver = "in_turn" | "next_step";

/**
 * What becomes of calls with effects outside that a fork makes. `ask`: a person is asked before each. `recorded`: one
 * that the session has made too brings what it brought there, all others wait for a person. `live`: they are made.
 */
export type Effects = "ask" | "live" | "recorded";

/**
 * What was erased, or would be: how many tasks, mails, events and messages no longer have content. `notifications`
 * counts those that the log has no longer.
 */
export interface Erased {
  threads: number;
  tasks: number;
  mails: number;
  events: number;
  messages: number;
  notifications: number;
}

/** Events, the newest first. */
export interface EventList {
  events: EventRecord[];
}

/**
 * A named signal that was broadcast. `woken` and `notified` count the agents it woke and gave a task. One with
 * `erasedAt` no longer has data.
 */
export interface EventRecord {
  sessionId: string;
  eventId: string;
  name: string;
  sender: string;
  cause: string;
  data: unknown;
  woken: number;
  notified: number;
  createdAt: number;
  erasedAt: number | null;
}

/** Of which calls something holds; `sometimes`: it depends on the arguments. */
export type Extent = "always" | "never" | "sometimes";

/** Why a task ended badly: the stable code and the message of an error. */
export interface Failure {
  code: string;
  message: string;
}

/** An image or a file that goes along: `data` is its content in base64. */
export interface FilePart {
  data: string;
  name?: string;
  mediaType?: string;
}

/** Numbers of entries of the log, in order. */
export interface ForkPointList {
  points: number[];
}

/**
 * Sessions that were forked from `sessionId` after the entry `at` of its log. `recordedCalls` is how many results of
 * later calls each of them has at hand, with the effects `recorded`.
 */
export interface ForkReport {
  sessionId: string;
  at: number;
  sessionIds: string[];
  effects: Effects;
  recordedCalls: number;
}

/**
 * `limited`: requests wait for others to end. `held`: nobody begins, since the provider asks for that. `down`: an
 * outage, in which one request at a time tries whether the provider is back.
 */
export type GateState = "down" | "held" | "limited" | "open";

/** All agents of a session by id, as they are after the notification `last_seq`. Keys as in the user guide. */
export interface GuideAgentStates {
  agents: Record<string, GuideAgentStatus>;
  last_seq: number;
}

/**
 * What an agent is doing. `current_task` is the kind of the task that has run longest. It runs since `running_since`,
 * and a step of it ended last at `last_step_at`: one that hangs shows itself there. `last_activity_at` is when a task
 * of it last began or ended, or a step of one ended; at first, when it was created. `waiting_for` names what its loops
 * wait for: agents, locks as `lock:name`, people as `approval:id` or `question:id`; `paused_for` the resources that its
 * tools wait for, since others touch them now: it continues by itself. While there are `missing_tools` the agent waits
 * for them: provide them with `give_tools`. One with a `paused_limit` resumes when that limit is raised.
 * `sleeping_until` is what the wall clock shows when the sleep is over: if that clock is set, it changes, unless the
 * agent is `sleeping_by_wall_clock`, until just that time. While the task that has run longest waits to ask its model
 * again, `retry_at` says until when and `retry_reason` why: the provider is down, say. `dead_tasks` counts its tasks
 * that failed and wait for a person.
 */
export interface GuideAgentStatus {
  agent_id: string;
  state: AgentState;
  current_task: string | null;
  queue_size: number;
  sleeping_until: number | null;
  started: boolean;
  reason: string;
  unread_mail: number;
  running_tasks: string[];
  progress_percent: number | null;
  progress_note: string;
  tasks: number;
  usage: GuideUsage;
  name: string;
  description: string;
  wake_events: string[];
  waiting_for: string[];
  paused_for: string[];
  missing_tools: string[];
  paused_limit: string | null;
  running_since: number | null;
  last_step_at: number | null;
  last_activity_at: number;
  sleeping_by_wall_clock: boolean;
  retry_at: number | null;
  dead_tasks: number;
  retry_reason: string;
}

/**
 * What was used. `cost_usd` is None when the price of the model is not known. A sum is the cost of what has a price;
 * `unpriced_tokens` are those in it that have none. `wall_seconds` is how long model requests and tools took,
 * `cpu_seconds` and `memory_bytes` what processes of tools took: their time together, the memory of the largest.
 */
export interface GuideUsage {
  input_tokens: number;
  output_tokens: number;
  cached_tokens: number;
  cost_usd: number | null;
  model_calls: number;
  tool_calls: number;
  wall_seconds: number;
  cpu_seconds: number;
  memory_bytes: number;
  mails_sent: number;
  unpriced_tokens: number;
}

/** A lock that somebody holds. */
export interface HeldLock {
  name: string;
  holder: string;
  agentId: string | null;
  taskId: string | null;
  token: number;
  acquiredAt: number;
  expiresAt: number;
}

/** What an id is of. Mail is that in the user's inbox. */
export type IdKind = "approval" | "mail" | "question" | "room" | "schedule" | "task";

/** Ids, in order. */
export interface IdList {
  ids: string[];
}

/** A session that was imported: how many rows of each kind there are, and how many files. */
export interface ImportedSession {
  sessionId: string;
  file: string;
  rows: Record<string, number>;
  files: number;
}

/** A mail of the user that is neither archived nor dead. `arrival` is its place in the session's order. */
export interface InboxMail {
  mailId: string;
  threadId: string;
  sender: string;
  subject: string;
  priority: Priority;
  isRead: boolean;
  at: number;
  arrival: number;
}

/** How a lease ended. `by` and `reason` are of the person who broke it. */
export interface LeaseEnd {
  name: string;
  token: number;
  holder: string;
  taskId: string | null;
  ending: LeaseEnding;
  at: number;
  by: string;
  reason: string;
}

/** How a lease can end. One whose task ends is released. */
export type LeaseEnding = "broken" | "expired" | "released";

/**
 * What happens at a limit: a call is refused, a task fails, its agent is paused for a person, or work waits. A result
 * that is too long is cut.
 */
export type LimitAction = "cut" | "failed" | "paused" | "refused" | "waiting";

/** Whom a limit holds for: an agent, a task and all that it causes, a session, or all sessions of a server. */
export type LimitScope = "agent" | "server" | "session" | "tree";

/** Where a limit that holds was stated; `setting` is what the server, or the session manager, was started with. */
export type LimitSource = "agent" | "default" | "server" | "session" | "setting";

/**
 * A limit that holds. `used` is what is used of it now, where that can be told; 0 as a value means no limit. `reached`
 * counts how often it was reached since the session was opened.
 */
export interface LimitState {
  name: string;
  value: number;
  source: LimitSource;
  used: number | null;
  reached: number;
}

/** What an agent may use, as far as it is stated; `EffectiveLimits` says what holds where nothing is. */
export interface Limits {
  max_concurrent_tasks?: number | null;
  max_queue_length?: number | null;
  max_steps_per_task?: number | null;
  max_same_calls?: number | null;
  max_continuations?: number | null;
  max_task_seconds?: number | null;
  max_prompt_bytes?: number | null;
  max_mail_bytes?: number | null;
  max_result_bytes?: number | null;
  max_switch_depth?: number | null;
  switch_timeout_seconds?: number | null;
  max_tasks_per_tree?: number | null;
  max_tokens_per_tree?: number | null;
  max_cost_usd_per_tree?: number | null;
  max_tokens_per_agent?: number | null;
  max_cost_usd_per_agent?: number | null;
  max_context_bytes?: number | null;
  max_answer_bytes?: number | null;
  max_answer_seconds?: number | null;
  max_retry_after_seconds?: number | null;
  max_outage_seconds?: number | null;
  max_tool_seconds?: number | null;
  max_tool_cpu_seconds?: number | null;
  max_tool_memory_bytes?: number | null;
  max_tool_processes?: number | null;
  max_file_bytes?: number | null;
  max_memory_index_bytes?: number | null;
  max_attachment_bytes?: number | null;
}

/** The limits of an agent, or of a session: what it may use in all, and the defaults of its agents. */
export interface LimitsReport {
  scope: LimitScope;
  agentId: string | null;
  limits: LimitState[];
}

/** How often one agent, or the user, reached another in one way, and when last. */
export interface Link {
  kind: LinkKind;
  from: string;
  to: string;
  count: number;
  lastAt: number;
}

/** How one reached another. A switch is a mail too. */
export type LinkKind = "delegation" | "event" | "mail" | "switch";

/**
 * Whether a token is the current one of a lock; who has the lock now; and what became of the token if it is known.
 * `told` says the same in words.
 */
export interface LockCheck {
  name: string;
  token: number;
  isCurrent: boolean;
  lock: LockRecord | null;
  ended: LeaseEnd | null;
  told: string;
}

/** The locks that are held. */
export interface LockList {
  locks: LockSummary[];
}

/**
 * A named lock. `token` rises with every holder; without a holder the lock is free. `holder` is the id of the agent
 * whose task holds it, or what a person or program that holds it is called: then it has no task.
 */
export interface LockRecord {
  sessionId: string;
  name: string;
  token: number;
  agentId: string | null;
  taskId: string | null;
  acquiredAt: number | null;
  expiresAt: number | null;
  holder: string | null;
}

/** A lock as it is listed, with those who wait for it, in the order in which they get it. */
export interface LockSummary {
  sessionId: string;
  name: string;
  token: number;
  agentId: string | null;
  taskId: string | null;
  acquiredAt: number | null;
  expiresAt: number | null;
  holder: string | null;
  waiting: LockWaiter[];
}

/** Somebody who waits for a lock: a task of an agent, or a person or program, which has no task. */
export interface LockWaiter {
  waiter: string;
  agentId: string | null;
  taskId: string | null;
  ttlSeconds: number;
  deadlineAt: number;
  createdAt: number;
}

/** Entries of a log; `next` is where the ones after them begin. */
export interface LogEntries {
  entries: Record<string, unknown>[];
  next: number;
}

/** Mails, the newest first. */
export interface MailList {
  mails: MailRecord[];
}

/**
 * A durable message. `sequence` counts the mails of one sender; `taskId` is the task that handles it. An `awaited` mail
 * is one whose sender waits for the answer, or did: its task's result is its reply. A mail with `erasedAt` no longer
 * has a subject and a body.
 */
export interface MailRecord {
  sessionId: string;
  mailId: string;
  threadId: string;
  sender: string;
  sequence: number;
  recipient: string;
  subject: string;
  body: string;
  arrival: number;
  cause: string;
  priority: Priority;
  replyTo: string | null;
  state: MailState;
  taskId: string | null;
  createdAt: number;
  readAt: number | null;
  awaited: boolean;
  origin: Origin | null;
  erasedAt: number | null;
}

/** How far a mail has come. `dead`: a dead letter, which waits for a person. */
export type MailState = "archived" | "dead" | "delivered" | "queued" | "read" | "replied";

/** Servers, by name. */
export interface McpServerList {
  servers: McpServerStatus[];
}

/** A server as it is now. `problems` says which of its tools were left out, and why. */
export interface McpServerStatus {
  name: string;
  target: string;
  state: McpState;
  tools: McpToolStatus[];
  problems: string[];
  error: string | null;
  retryAt: number | null;
}

/** Whether a server can be used: it is started when it is first needed, and again after it failed. */
export type McpState = "failed" | "not_started" | "ready" | "starting" | "stopped";

/** A tool of a server by the name that it is granted and called by. `hints` is what the server says of it. */
export interface McpToolStatus {
  name: string;
  description: string;
  hints: string[];
}

/** A file of an agent's memory; `path` is relative to the memory. */
export interface MemoryFile {
  path: string;
  size: number;
  changedAt: number;
}

/** The files of a memory, by path. */
export interface MemoryFiles {
  files: MemoryFile[];
}

/** A file of an agent's memory with its text. One that `isCut` is longer. */
export interface MemoryText {
  path: string;
  size: number;
  changedAt: number;
  text: string;
  isCut: boolean;
}

/** Messages of a room, in order. */
export interface MessageList {
  messages: MessageRecord[];
}

/** An image or a file that came with a message, see `Attachment`. */
export interface MessagePart {
  digest: string;
  mediaType: string;
  size: number;
  name: string;
  tokens: number;
}

/**
 * One message of a room. `taskId` is the task whose answer it is; `hops` counts the agents before it in a row.
 * `mentions` are the members that it addresses by name; `asked` leads from those who were asked for an answer to the
 * tasks in which they give it. `parts` are the images and files that came with it. One with `erasedAt` no longer has a
 * text.
 */
export interface MessageRecord {
  sessionId: string;
  messageId: string;
  roomId: string;
  number: number;
  sender: string;
  text: string;
  mentions: string[];
  asked: Record<string, string>;
  taskId: string | null;
  hops: number;
  cause: string;
  createdAt: number;
  parts: Attachment[] | null;
  erasedAt: number | null;
}

/** What becomes of due times that passed while nothing could fire: none fires, the last one does, or all do. */
export type MissedRuns = "all" | "once" | "skip";

/** A mail that is to be sent, under an id that the caller chooses. */
export interface NewMail {
  to: string;
  subject: string;
  body: string;
  mailId: string;
  priority?: Priority;
  threadId?: string | null;
}

/** `draining`: it gives its sessions to others and takes no more. */
export type NodeState = "draining" | "joined";

/**
 * A node of the cluster. `isThis` is whether it answers; `hasSameSettings` as the one that does. `tags` are what
 * sessions may need to be there. `lagSeconds` is how late its event loop is, `busy` how much of a processor it takes:
 * averages of some ten seconds.
 */
export interface NodeStatus {
  name: string;
  address: string;
  state: NodeState;
  version: string;
  sandbox: string;
  serves: boolean;
  sessions: number;
  startedAt: number;
  isThis: boolean;
  hasSameSettings: boolean;
  lagSeconds: number;
  busy: number;
  tags: string[];
}

/** Notifications, in order; `lastSeq` is the number of the newest that there is. */
export interface NotificationList {
  notifications: Notification[];
  lastSeq: number;
}

/**
 * A model request or a tool call that has begun and has not ended. A request that failed and is to be repeated waits
 * until `retryAt`, for the `retryReason`.
 */
export interface OpenStep {
  stepId: string;
  kind: StepKind;
  tool: string | null;
  startedAt: number;
  retryAt: number | null;
  retryReason: string;
}

/**
 * A task that has not ended. `attempt` counts how often its loop was begun, since it crashed; 0 while it waits.
 * `startedAt` of one that waits is when it was begun before it was taken up again; `lastStepAt` is when a step of it
 * ended last since it was begun.
 */
export interface OpenTask {
  taskId: string;
  agentId: string;
  threadId: string;
  kind: TaskKind;
  priority: Priority;
  summary: string;
  state: TaskState;
  attempt: number;
  mailId: string | null;
  progressPercent: number | null;
  progressNote: string;
  queuedAt: number;
  startedAt: number | null;
  lastStepAt: number | null;
  steps: OpenStep[];
}

/**
 * Somebody who waits: a tool call, whose step is the `waitId`, or a person or program at a lock. `targets` are the
 * resources, of which there may be several, else just the `target`; `holders` those who have it.
 */
export interface OpenWait {
  waitId: string;
  kind: WaitKind;
  agentId: string | null;
  taskId: string | null;
  waiter: string;
  target: string;
  targets: string[];
  holders: string[];
  since: number;
  deadlineAt: number | null;
}

/**
 * Where a task or a mail comes from: the task at the root of its tree, and the terms that the tree inherits. `answers`
 * is the awaited mail that a task, or the one that it continues, is to answer. `outputSchema` is the JSON Schema that
 * the answer of the task has to fit; what the task causes does not inherit it. A `quiet` one was made by the runtime,
 * to tell somebody of a result or of a failure: nobody is told if it cannot be handled. One for the `nextStep` joins
 * the task at work in its thread, if there is one. A task that `continuesCut` continues within an answer which stopped
 * at its greatest length: there is no line break between, nor a blank.
 */
export interface Origin {
  rootId: string | null;
  deadlineAt: number | null;
  budget: Budget | null;
  reportTo: ReportTo | null;
  room: RoomTurn | null;
  answers: string | null;
  outputSchema: Record<string, unknown> | null;
  quiet: boolean;
  nextStep: boolean;
  continuesCut: boolean;
}

/**
 * The first step in which an agent differs. `key` is what caused the step, and its number. `seqA` and `seqB` are the
 * entries of the logs that tell of its end, `textA` and `textB` what it brought, shortened, and `diff` the lines that
 * differ; None and empty where the step is not.
 */
export interface Parting {
  agentId: string;
  key: string;
  kind: PartingKind;
  seqA: number | null;
  seqB: number | null;
  textA: string;
  textB: string;
  diff: string;
}

/** How two sessions differ in a step: its answer or its result, or only one of them has it. */
export type PartingKind = "answer" | "only_in_a" | "only_in_b" | "result";

/** A tool call that waits for a person. */
export interface PendingApproval {
  approvalId: string;
  agentId: string;
  taskId: string;
  tool: string;
  digest: string;
  at: number;
}

/** What an agent asks a person, with the beginning of the question. Its wait, of the same id, has its deadline. */
export interface PendingQuestion {
  questionId: string;
  agentId: string;
  taskId: string;
  question: string;
  at: number;
}

/** A place in a thread: after this step of this task. With the number 0 it is before the task. */
export interface Place {
  taskId: string;
  number: number;
}

/** Which node has a session, and for the how manieth time some node has it; `node` is empty if none has. */
export interface PlacedSession {
  sessionId: string;
  node: string;
  address: string;
  epoch: number;
}

/** What is taken first: `urgent`, then `high`, `normal`, `low`. */
export type Priority = "high" | "low" | "normal" | "urgent";

/**
 * The gate of an account as it is now, for all sessions of the process together. `allowed` is how many requests may be
 * under way at once, as far as that was found out. `retryAt` is when the next one is made if none is now, and `reason`
 * what the provider said. The counts are since the process began.
 */
export interface ProviderAccount {
  account: string;
  provider: string;
  state: GateState;
  allowed: number;
  underWay: number;
  waiting: number;
  retryAt: number | null;
  reason: string;
  requests: number;
  refusals: number;
  outages: number;
}

/** Accounts, in the order in which they were first asked. */
export interface ProviderAccountList {
  accounts: ProviderAccount[];
}

/** What pruning a session did, or would do: what ended before `before` is erased; the log begins at `firstSeq`. */
export interface PruneReport {
  sessionId: string;
  before: number;
  firstSeq: number;
  erased: Erased;
  dryRun: boolean;
}

/** What agents ask people: what waits for an answer with the oldest first, all else with the newest first. */
export interface QuestionList {
  questions: QuestionRecord[];
}

/**
 * What an agent asks a person in a tool call that waits for the answer. Its id is that of the step. `schema` is the
 * form of the answer, a flat JSON Schema of an object, which the `answer` fits. `deadlineAt` is when the call waits no
 * longer; None if it waits as long as its task may.
 */
export interface QuestionRecord {
  sessionId: string;
  questionId: string;
  agentId: string;
  taskId: string;
  question: string;
  schema: Record<string, unknown>;
  state: QuestionState;
  askedAt: number;
  deadlineAt: number | null;
  decidedAt: number | null;
  decidedBy: string | null;
  answer: Record<string, unknown> | null;
  reason: string;
}

/** `expired`: its time was over. `withdrawn`: the task ended first. */
export type QuestionState = "answered" | "expired" | "pending" | "refused" | "withdrawn";

/**
 * The Ray that runs the nodes: how many there are to be, and how long ago it was last heard of. The number is chosen
 * between `least` and `most`, by how late the nodes are and by `sessionsEach`, which is how many sessions a node is to
 * have. `why` is the reason of the last choice; empty if a person made it.
 */
export interface RayStatus {
  address: string;
  wanted: number;
  silentSeconds: number;
  least: number;
  most: number;
  sessionsEach: number;
  why: string;
}

/** Who is mailed the result of a delegated task, in which conversation, and until when that is of use. */
export interface ReportTo {
  agentId: string;
  threadId: string;
  deadlineAt: number | null;
}

/** The resources that tools touch now, by name. */
export interface ResourceList {
  resources: ResourceStatus[];
}

/** A resource that is touched now: who holds it, and who waits for it, in the order in which they came. */
export interface ResourceStatus {
  resource: string;
  holders: ResourceUse[];
  waiting: ResourceUse[];
}

/** A tool call that touches a resource since then, or waits for it since then. */
export interface ResourceUse {
  agentId: string;
  taskId: string;
  stepId: string;
  access: Access;
  since: number;
}

/** What came of retrying all failed tasks: how many were queued again, and why others were not, by task id. */
export interface RetriedTasks {
  retried: number;
  notRetried: number;
  taskIds: string[];
  reasons: Record<string, string>;
}

/**
 * How failed model requests are repeated, and when one that is under way has failed. A request has failed when nothing
 * has come for `stall_seconds`, or for `first_token_seconds` while nothing of the answer has come yet: a model may have
 * much to read before it begins, and may have to be loaded for it. While the provider is down or cannot be reached,
 * `max_outage_seconds` of the limits takes the place of `max_attempts`.
 */
export interface RetryPolicy {
  max_attempts?: number;
  first_delay_seconds?: number;
  max_delay_seconds?: number;
  first_token_seconds?: number;
  stall_seconds?: number;
}

/** `direct`: the user and one agent. `group`: the user and several. */
export type RoomKind = "direct" | "group";

/** Rooms, the oldest first. */
export interface RoomList {
  rooms: RoomRecord[];
}

/**
 * A chat of the user with one agent or several. `seen` is the last message that each member was shown. Messages up to
 * the number `erasedUntil` no longer have a text. A room that was deleted (`deletedAt`) is kept for its numbers alone:
 * one of the same id continues with them.
 */
export interface RoomRecord {
  sessionId: string;
  roomId: string;
  kind: RoomKind;
  title: string;
  members: string[];
  hopLimit: number;
  lastNumber: number;
  seen: Record<string, number>;
  createdAt: number;
  erasedUntil: number;
  deletedAt: number | null;
}

/** A room, and who is about to answer in it: agents by task. */
export interface RoomState {
  roomId: string;
  kind: RoomKind;
  title: string;
  members: string[];
  hopLimit: number;
  lastNumber: number;
  lastAt: number;
  answering: Record<string, string>;
}

/**
 * The message of a room that a task answers. `seen` is the message up to which the member had seen the room before: the
 * task shows it those after it.
 */
export interface RoomTurn {
  roomId: string;
  number: number;
  seen: number;
  hops: number;
}

/** What was said to a task at work before one of its steps: the prompt of the task that waited in its thread. */
export interface Said {
  taskId: string;
  text: string;
  parts: Attachment[];
}

/**
 * When something fires, by `cron` or `interval_seconds`, and what: a `prompt` for the agent, or an `event`. With `wake`
 * the prompt wakes the agent if it sleeps; without, it waits until the agent is awake. An event wakes those that sleep
 * until it.
 */
export interface ScheduleDefinition {
  cron?: string | null;
  interval_seconds?: number | null;
  zone?: string;
  prompt?: string | null;
  event?: string | null;
  data?: unknown;
  missed?: MissedRuns;
  wake?: boolean;
}

/** Schedules, the oldest first. */
export interface ScheduleList {
  schedules: ScheduleRecord[];
}

/**
 * A schedule and where it stands. `nextAt` is the due instant that fires next; `lastAt` the one that fired last.
 * `agentId` is the agent that a prompt goes to and that the schedule belongs to; None for an event of the session.
 */
export interface ScheduleRecord {
  sessionId: string;
  scheduleId: string;
  definition: ScheduleDefinition;
  agentId: string | null;
  paused: boolean;
  nextAt: number | null;
  lastAt: number | null;
  fired: number;
  cause: string;
  createdAt: number;
}

/** A schedule and where it stands. */
export interface ScheduleState {
  scheduleId: string;
  agentId: string | null;
  cron: string | null;
  intervalSeconds: number | null;
  zone: string;
  prompt: string | null;
  event: string | null;
  wake: boolean;
  paused: boolean;
  nextAt: number | null;
  lastAt: number | null;
  fired: number;
}

/** Mails, in the order in which they were given. */
export interface SentMails {
  mails: MailRecord[];
}

/**
 * The server, and who the caller is to it. `sandbox` is what holds the programs of agents, `untried` until that was
 * found out, `none` if nothing does.
 */
export interface ServerInfo {
  version: string;
  principal: string;
  model: string;
  sandbox: string;
  maxFrameBytes: number;
  startedAt: number;
}

/** Sessions, the newest first. */
export interface SessionList {
  sessions: SessionSummary[];
}

/** A session as it is listed, with the number of its agents. */
export interface SessionSummary {
  sessionId: string;
  title: string;
  owner: string;
  createdAt: number;
  needs: string[];
  agents: number;
}

/**
 * A session right after the notification `lastSeq`, which was at `at`: subscribe after it to resume from here. `waits`
 * are in the order in which they began. `deadTasks` and `deadMails` count what waits for a person, failed tasks among
 * them, dismissed ones not. `clockOffsetSeconds` is how far the wall clock of the server is ahead of the session's: not
 * 0 if it was set while something was counted. The log has notifications from `firstSeq` on.
 */
export interface Snapshot {
  lastSeq: number;
  firstSeq: number;
  at: number;
  clockOffsetSeconds: number;
  agents: AgentStatus[];
  tasks: OpenTask[];
  waits: OpenWait[];
  rooms: RoomState[];
  links: Link[];
  inbox: InboxMail[];
  locks: HeldLock[];
  approvals: PendingApproval[];
  questions: PendingQuestion[];
  schedules: ScheduleState[];
  deadTasks: number;
  deadMails: number;
}

/** What a session, or an agent of it, has used. `costUsd` is of what has a price, None if nothing has. */
export interface Spent {
  requests: number;
  inputTokens: number;
  outputTokens: number;
  costUsd: number | null;
  seconds: number;
}

/** What each of two sessions has used; with an `agentId`, that agent in each. */
export interface SpentByBoth {
  agentId: string | null;
  a: Spent;
  b: Spent;
}

/** A model request, a tool call, or that the conversation is made shorter. */
export type StepKind = "compaction" | "model" | "tool";

/** The steps of a task, in order. */
export interface StepList {
  steps: StepRecord[];
}

/**
 * One model request, tool call or compaction of a task: the unit of the journal. A model request that turns out to be
 * too long becomes a `compaction` under its number, and the request is the next step. The summary, if a model is asked
 * for one, is its `answer`. `attempt` counts the starts, `failures` those attempts that failed by themselves, outages
 * of the provider apart. A failed attempt leaves its error and the time of the next one in `error` and `retryAt`; the
 * step is repeated under the same id. `requests` counts the model requests that were made and ended, by an answer, by a
 * failure or cut off, and `requestSeconds` is how long these took together, without the waits before and between them.
 * A step that is taken up again keeps them. `outageSeconds` is how long the step was held up because its provider was
 * down or could not be reached, or let others in and not this one: the requests that failed so, and the waits after
 * them. `said` are messages to the task at work that its model is shown with this request for the first time. `model`
 * is which one is asked by the last attempt, if the agent has several.
 */
export interface StepRecord {
  sessionId: string;
  taskId: string;
  number: number;
  kind: StepKind;
  state: StepState;
  attempt: number;
  failures: number;
  call: ToolCall | null;
  answer: Answer | null;
  result: ToolResult | null;
  error: Failure | null;
  retryAt: number | null;
  startedAt: number;
  finishedAt: number | null;
  requests: number;
  requestSeconds: number;
  outageSeconds: number;
  compaction: Compaction | null;
  model: string;
  said: Said[] | null;
}

/** What the processes of a tool call took, and the sandbox that held them. */
export interface StepRun {
  sandbox: string;
  wallSeconds: number;
  cpuSeconds: number;
  memoryBytes: number;
}

/** `unknown`: it was cut off, and may have had its effect. */
export type StepState = "done" | "failed" | "started" | "unknown";

/** What one model request used. `costUsd` is None when the price of the model is not known. */
export interface StepUsage {
  inputTokens: number;
  outputTokens: number;
  costUsd: number | null;
}

/**
 * How large a session is, by what is in it, and how large the database of all sessions. `freeBytes` are in the file and
 * hold nothing. `firstSeq` is where the log begins.
 */
export interface StorageReport {
  sessionId: string;
  firstSeq: number;
  lastSeq: number;
  parts: StoredPart[];
  sizeBytes: number;
  databaseBytes: number;
  freeBytes: number;
}

/** What one kind of records takes in a session: how many rows there are, and about how many bytes. */
export interface StoredPart {
  name: string;
  rows: number;
  sizeBytes: number;
}

/**
 * `after` is where the subscription begins or ended, `lastSeq` the newest notification that there is. The log begins at
 * `firstSeq`. A session that was deleted and made again under the same id has another `createdAt`, and another log.
 */
export interface Subscribed {
  sessionId: string;
  after: number;
  lastSeq: number;
  firstSeq: number;
  createdAt: number;
}

/**
 * What happens to a loop that crashes, and when its agent is stopped. A crashed loop begins again up to `max_restarts`
 * times, each time after a longer delay; then its task becomes a dead letter. After `max_failures` failed tasks within
 * `window_seconds` the agent is stopped, with the reason kept.
 */
export interface Supervision {
  max_restarts?: number;
  first_delay_seconds?: number;
  max_delay_seconds?: number;
  max_failures?: number;
  window_seconds?: number;
}

/**
 * How a task that is taken up again was before. `startedAt` is None if it had never begun. `dismissed` is there if it
 * was no longer a dead letter.
 */
export interface TaskBefore {
  state: TaskState;
  createdAt: number;
  startedAt: number | null;
  progressPercent: number | null;
  progressNote: string;
  dismissed?: boolean;
}

/** What a task may use together with everything that it causes. */
export interface TaskBudget {
  maxTokens?: number | null;
  maxCostUsd?: number | null;
}

/** What a task came from. */
export type TaskKind =
  | "compaction"
  | "continuation"
  | "delegated_task"
  | "event"
  | "mailbox_message"
  | "room_message"
  | "scheduled"
  | "user_prompt"
  | "wake_up";

/** Tasks. */
export interface TaskList {
  tasks: TaskRecord[];
}

/**
 * One unit of work. A task that opens a thread lends it its id: `threadId == taskId`. `arrival` is the place in the
 * session's order of arrivals. `attempts` counts the starts, and is written before the run, so that a task that kills
 * the process cannot do so for ever; a task that proves harmless is counted from zero. `restarts` counts the times its
 * loop crashed; it does not begin again before `notBefore`, nor does one at whose start the process died again and
 * again. `dismissedAt` is when a person dismissed the dead letter. `notes` is what the agent was told of its memory at
 * the beginning of the task, `parts` are the images and files given with it. `joinedStep` is the step of another task
 * before which its prompt was said, if it has joined that. Of a task with `erasedAt` only the standing is kept: that it
 * was given and how it ended, without prompt, answer and steps.
 */
export interface TaskRecord {
  sessionId: string;
  taskId: string;
  agentId: string;
  threadId: string;
  kind: TaskKind;
  prompt: string;
  arrival: number;
  cause: string;
  priority: Priority;
  state: TaskState;
  mailId: string | null;
  parentId: string | null;
  continuation: number;
  attempts: number;
  progressPercent: number | null;
  progressNote: string;
  result: ChannelResponse | null;
  error: Failure | null;
  usage: Usage;
  createdAt: number;
  startedAt: number | null;
  finishedAt: number | null;
  origin: Origin | null;
  notBefore: number | null;
  restarts: number;
  dismissedAt: number | null;
  notes: string | null;
  parts: Attachment[] | null;
  joinedStep: string | null;
  erasedAt: number | null;
}

/**
 * `continued`: the answer asked for more, in another task. `dead`: a dead letter, which waits for a person. `joined`:
 * its prompt went into the task that was at work in its conversation, whose answer is for both.
 */
export type TaskState = "cancelled" | "completed" | "continued" | "dead" | "failed" | "joined" | "queued" | "running";

/**
 * A template, where it was read from, and the definition that it gives an agent. `ignored` is what its file says that
 * means nothing here: fields, and tools that are not there.
 */
export interface TemplateDetails {
  name: string;
  source: string;
  definition: AgentDefinition;
  ignored: string[];
}

/** One line of the list: a template or, with an `error`, a file or folder that cannot be used. */
export interface TemplateEntry {
  name: string;
  description: string;
  kind: TemplateKind;
  path: string;
  error: string | null;
}

/** Where a template is from. */
export type TemplateKind = "built-in" | "claude" | "folder" | "project" | "user";

/** Templates by name, and the files that cannot be used. */
export interface TemplateList {
  templates: TemplateEntry[];
}

/** The conversations of an agent. */
export interface ThreadList {
  threads: ThreadSummary[];
}

/** A conversation of one agent, as the tasks in it tell. */
export interface ThreadSummary {
  threadId: string;
  tasks: number;
  firstAt: number;
  lastAt: number;
}

/** A tool call as the model asked for it; `arguments` is the JSON text that it wrote. */
export interface ToolCall {
  callId: string;
  name: string;
  arguments: string;
}

/**
 * A tool that agents can be granted or, with an `error`, a tool file that cannot be used, or not all of it. `source` is
 * the file that it is from; empty for a tool of the package or of the program that runs the server.
 */
export interface ToolEntry {
  name: string;
  kind: ToolKind;
  source: string;
  description: string;
  idempotent: Extent;
  needsApproval: Extent;
  touches: string[];
  untrusted: boolean;
  error: string | null;
}

/** `coordination` tools touch only the session, `machine` tools come with the package, `own` were provided. */
export type ToolKind = "coordination" | "machine" | "own";

/** The tools that there are, and the tool files that cannot be used. */
export interface ToolList {
  tools: ToolEntry[];
}

/**
 * What a tool call brought, as the model is shown it. `mails` are the mails that it shows, `mailsSent` counts those
 * that it sent. An `untrusted` one holds what strangers may have written: pages, files, the output of programs. A call
 * that was `notRun` had been made often enough with the same result; its content says so.
 */
export interface ToolResult {
  content: string;
  isError: boolean;
  mails: string[];
  mailsSent: number;
  untrusted: boolean;
  run: ToolRun | null;
  notRun: boolean;
}

/**
 * What the processes of a tool call took from the machine, and what held them: the name of the sandbox. `limit` is the
 * limit that they reached and were ended for, if any. `memoryBytes` of a small program that ended at once is no more
 * than the most that it can have had.
 */
export interface ToolRun {
  sandbox: string;
  limit: string;
  wallSeconds: number;
  cpuSeconds: number;
  memoryBytes: number;
}

/** A call or a mail that only one of two sessions has, and the entry of its log that tells of it. */
export interface Unmatched {
  agentId: string;
  text: string;
  seq: number;
}

/**
 * What was used. `costUsd` is None when the price of the model is not known. A sum is the cost of what has a price;
 * `unpricedTokens` are those in it that have none. `wallSeconds` is how long model requests and tools took,
 * `cpuSeconds` and `memoryBytes` what processes of tools took: their time together, the memory of the largest.
 */
export interface Usage {
  inputTokens: number;
  outputTokens: number;
  cachedTokens: number;
  costUsd: number | null;
  modelCalls: number;
  toolCalls: number;
  wallSeconds: number;
  cpuSeconds: number;
  memoryBytes: number;
  mailsSent: number;
  unpricedTokens: number;
}

/**
 * What was used, by agent and in total. `cost_usd` is null where the price of no model is known. The mails that the
 * user was sent count in the total of a session.
 */
export interface UsageReport {
  agents: Record<string, UsageTotals>;
  total: UsageTotals;
}

/**
 * How many tasks were begun, what they used, how many mails came in. `contextBytes` is what conversations take in
 * memory now.
 */
export interface UsageTotals {
  tasks: number;
  usage: Usage;
  mailsReceived: number;
  contextBytes: number;
}

/** What a tool call waits for: the reply to a mail, a lock, a person's approval, a person's answer, its turn. */
export type WaitKind = "approval" | "lock" | "question" | "reply" | "resource";

/** Params and result by the name of the method. */
export interface Methods {
  /**
   * Create an agent and, unless told otherwise, start it. `config` overrides the fields of `template`; without a
   * template it is the whole definition. With neither, the template that is called like the agent is used, if there is
   * one.
   */
  "async.createAgent": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId: string;
      /** Fields of a definition, called as in templates. */
      config?: Record<string, unknown> | null;
      /** The name of the template that the agent is created from. */
      template?: string | null;
      /** Whether the agent takes work at once. */
      autoStart?: boolean;
    };
    result: AgentStatus;
  };
  /**
   * Let an agent take work; one that is not there is created as `async.createAgent` does. With a config or a template
   * it must be stopped or new: they replace its definition. `config` overrides the fields of `template`.
   */
  "async.startAgent": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId: string;
      /** Fields of a definition, called as in templates. */
      config?: Record<string, unknown> | null;
      /** The name of the template that the agent is created from. */
      template?: string | null;
    };
    result: AgentStatus;
  };
  /** Let no new step begin. The step under way runs to its end, mail keeps arriving. */
  "async.pauseAgent": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId: string;
      /** Why, in words for people and agents. */
      reason?: string;
    };
    result: AgentStatus;
  };
  /** Pause at once: the model request in flight is cancelled, and repeated later. */
  "async.interruptAgent": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId: string;
      /** Why, in words for people and agents. */
      reason?: string;
    };
    result: AgentStatus;
  };
  /** Resume where the agent was paused. */
  "async.resumeAgent": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId: string;
    };
    result: AgentStatus;
  };
  /** Cancel what runs and free everything. Mail and queue are kept. */
  "async.stopAgent": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId: string;
      /** Why, in words for people and agents. */
      reason?: string;
    };
    result: AgentStatus;
  };
  /**
   * Let the agent sleep for a time, until a time, or until an event, whichever comes first. An agent that is not there
   * is created if a template is called like it. `until` is in seconds since the epoch, or ISO 8601 text with its zone.
   */
  "async.sleepAgent": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId: string;
      /** How long to sleep. */
      durationSeconds?: number | null;
      /** When to wake up. */
      until?: number | string | null;
      /** The events that end the sleep. */
      wakeEvents?: string[];
      /** Why, in words for people and agents. */
      reason?: string;
    };
    result: AgentStatus;
  };
  /** End the agent's sleep; it is told the reason. */
  "async.wakeAgent": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId: string;
      /** Why, in words for people and agents. */
      reason?: string;
    };
    result: AgentStatus;
  };
  /**
   * Give the agent a task. When this is answered the task is on disk. Tasks of one thread share their history. An agent
   * that is not there is created if a template is called like it. `timeoutSeconds` and `budget` hold for the task and
   * for everything that it causes. A caller that gives a `taskId` may call again with the same content: the task is
   * given once. `outputSchema` is the JSON Schema that the answer has to fit: the model is told it, and asked once more
   * if its answer does not; the value is in `result.output` then. With `deliver` `next_step` the prompt is a message to
   * the task at work in the thread, or without a `threadId` to the one task at work, before its next step.
   */
  "async.sendTask": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId: string;
      /** What the agent is asked to do. */
      prompt: string;
      /** What is taken first. */
      priority?: Priority;
      /** The id of the conversation that it belongs to. */
      threadId?: string | null;
      /** The id of the task. */
      taskId?: string | null;
      /** How long it may take. */
      timeoutSeconds?: number | null;
      /** What the task may use together with everything that it causes. */
      budget?: TaskBudget | null;
      /** The JSON Schema that the answer has to fit. */
      outputSchema?: Record<string, unknown> | null;
      /** Images and files that go along, with their content in base64. */
      parts?: FilePart[];
      /** When it is heard: in its turn, or before the next step of the task at work in its thread. */
      deliver?: Deliver;
    };
    result: TaskRecord;
  };
  /** What all agents of the session are doing. Times are in seconds since the epoch. */
  "async.getAgentStates": {
    params: {
      /** The id of the session. */
      sessionId: string;
    };
    result: GuideAgentStates;
  };
  /**
   * Broadcast an event: it wakes agents that sleep until it and becomes a task for those that subscribe. Under the same
   * `eventId` it happens once, however often it is called.
   */
  "async.broadcastEvent": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The name of the event. */
      event: string;
      /** What the event carries: any JSON value. */
      data?: unknown;
      /** The id of the event. */
      eventId?: string | null;
    };
    result: EventRecord;
  };
  /** What one agent is doing, and its definition as a template would have it. */
  "agent.get": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId: string;
    };
    result: AgentDetails;
  };
  /** The events that were broadcast, the newest first. */
  "async.listEvents": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** How many entries at most. */
      limit?: number;
    };
    result: EventList;
  };
  /** The task as it is now. */
  "task.get": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the task. */
      taskId: string;
    };
    result: TaskRecord;
  };
  /** The tasks of an agent, or of all agents, the newest first. */
  "task.list": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId?: string | null;
      /** How many entries at most. */
      limit?: number;
    };
    result: TaskList;
  };
  /**
   * Wait until the task has ended. If it has not after `timeoutSeconds`, it is answered as it is then. A task that was
   * continued has ended when its last continuation has; that one is the result then, with the answer of all of them.
   */
  "task.wait": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the task. */
      taskId: string;
      /** How long it may take. */
      timeoutSeconds?: number;
    };
    result: TaskRecord;
  };
  /** End a task. When this is answered, what it ran has ended. */
  "task.cancel": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the task. */
      taskId: string;
      /** Why, in words for people and agents. */
      reason?: string;
    };
    result: TaskRecord;
  };
  /** End a task and everything that it caused. The answer has the tasks that were cancelled. */
  "task.cancelTree": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the task. */
      taskId: string;
      /** Why, in words for people and agents. */
      reason?: string;
    };
    result: TaskList;
  };
  /** Take a failed, cancelled or dead task up again at the step where it ended; no finished step is repeated. */
  "task.retry": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the task. */
      taskId: string;
    };
    result: TaskRecord;
  };
  /**
   * Retry all failed tasks of an agent, or of all agents, that nobody has dismissed; the oldest first. Tasks at which
   * the process died and cancelled ones are left alone. Those that cannot be retried, since their time is over, their
   * budget is spent or the queue is full, are in `reasons`.
   */
  "task.retryFailed": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId?: string | null;
    };
    result: RetriedTasks;
  };
  /**
   * Take a failed or dead task off the dead letters; the mail that it was for is archived. Everything about it is kept,
   * and it can still be retried.
   */
  "task.dismiss": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the task. */
      taskId: string;
    };
    result: TaskRecord;
  };
  /** All tasks of the tree that the task belongs to, the oldest first; `parentId` says what caused what. */
  "task.tree": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the task. */
      taskId: string;
    };
    result: TaskList;
  };
  /** The journal of a task: its model requests and tool calls, or what follows the step of the number `after`. */
  "task.steps": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the task. */
      taskId: string;
      /** Begin after this number. */
      after?: number;
    };
    result: StepList;
  };
  /** The conversations of an agent. */
  "task.threads": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId: string;
    };
    result: ThreadList;
  };
  /** The tasks and mails that could not be done and wait for a person. */
  "task.deadLetters": {
    params: {
      /** The id of the session. */
      sessionId: string;
    };
    result: DeadLetters;
  };
  /**
   * What the agent's model would be shown of a thread now: how much that is, and how it was made shorter last. Without
   * a thread it is the one in which the agent was given something last.
   */
  "context.get": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId: string;
      /** The id of the conversation that it belongs to. */
      threadId?: string | null;
    };
    result: ContextReport;
  };
  /**
   * Make what the agent's model is shown of a thread as short as can be. The answer is the task that does it. Without
   * `threadId` it is the thread in which the agent was given something last. Nothing is deleted: the journal keeps all
   * of it. Under the same `taskId` it is done once, however often it is called.
   */
  "context.compact": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId: string;
      /** The id of the conversation that it belongs to. */
      threadId?: string | null;
      /** The id of the task. */
      taskId?: string | null;
    };
    result: TaskRecord;
  };
  /**
   * Send mail from the user to an agent. When this is answered the mail is on disk. A caller that gives a `mailId` may
   * call again with the same content: the mail is sent once.
   */
  "mail.send": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent that it is for, by its id, its name or an alias. */
      to: string;
      /** What the mail is about, in one line. */
      subject: string;
      /** The text of the mail. */
      body: string;
      /** What is taken first. */
      priority?: Priority;
      /** The id of the conversation that it belongs to. */
      threadId?: string | null;
      /** The id of the mail. */
      mailId?: string | null;
    };
    result: MailRecord;
  };
  /**
   * Send many mails from the user to agents at once, all of them or, if one cannot be sent, none. When this is answered
   * they are on disk. At most 1,000 go at once. A caller may call again with the same `mailId` and content: each mail
   * is sent once.
   */
  "mail.sendMany": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The mails that are to be sent. */
      mails: NewMail[];
    };
    result: SentMails;
  };
  /**
   * Answer a mail in the user's inbox. When this is answered the reply is on disk. A caller that gives a `replyId`, the
   * id of the mail that is sent, may call again with the same content: the reply is sent once.
   */
  "mail.reply": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the mail. */
      mailId: string;
      /** The text of the mail. */
      body: string;
      /** What is taken first. */
      priority?: Priority;
      /** The id of the mail that is sent as the reply. */
      replyId?: string | null;
    };
    result: MailRecord;
  };
  /** The mails of an agent or, by default, of the user, the newest first. */
  "mail.list": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** Whose mailbox: an agent, or `user`. */
      owner?: string;
      /** How many entries at most. */
      limit?: number;
    };
    result: MailList;
  };
  /** The mails that an agent or, by default, the user has sent, the newest first. */
  "mail.listSent": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** Whose mailbox: an agent, or `user`. */
      owner?: string;
      /** How many entries at most. */
      limit?: number;
    };
    result: MailList;
  };
  /** Mark a mail in the user's inbox as `read` or `archived`. */
  "mail.mark": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the mail. */
      mailId: string;
      /** The state to bring it into. */
      state: MailState;
    };
    result: MailRecord;
  };
  /** Open a group. An answer that mentions members asks them in turn, up to `hopLimit` times in a row. */
  "room.create": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agents of the room. */
      members: string[];
      /** What people call it. */
      title?: string;
      /** How many answers of agents in a row may ask further members. */
      hopLimit?: number;
      /** The id of the room. */
      roomId?: string | null;
    };
    result: RoomRecord;
  };
  /** The 1-1 room of an agent. It is made when it is asked for the first time. */
  "room.openChat": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId: string;
    };
    result: RoomRecord;
  };
  /** All rooms, the oldest first. */
  "room.list": {
    params: {
      /** The id of the session. */
      sessionId: string;
    };
    result: RoomList;
  };
  /** The room as it is now. */
  "room.get": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the room. */
      roomId: string;
    };
    result: RoomRecord;
  };
  /** Let an agent into a group; it can see what was said before. */
  "room.addMember": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the room. */
      roomId: string;
      /** The agent, by its id, its name or an alias. */
      agentId: string;
    };
    result: RoomRecord;
  };
  /** Take an agent out of a group. What it is about to answer is no longer posted. */
  "room.removeMember": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the room. */
      roomId: string;
      /** The agent, by its id, its name or an alias. */
      agentId: string;
    };
    result: RoomRecord;
  };
  /**
   * Say something in a room; `asked` of the answer leads from members to the tasks in which they answer. In a group
   * `@name` asks that member and `@all` all of them; without a mention all may answer or pass. With `deliver`
   * `next_step` members that are about to answer in the room hear it before their next step.
   */
  "room.post": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the room. */
      roomId: string;
      /** What is said. */
      text: string;
      /** The id of the message. */
      messageId?: string | null;
      /** Images and files that go along, with their content in base64. */
      parts?: FilePart[];
      /** When it is heard: in its turn, or before the next step of the task at work in its thread. */
      deliver?: Deliver;
    };
    result: MessageRecord;
  };
  /** A page of the room's transcript: the messages after this number, in order. */
  "room.messages": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the room. */
      roomId: string;
      /** Begin after this number. */
      after?: number;
      /** How many entries at most. */
      limit?: number;
    };
    result: MessageList;
  };
  /**
   * Give the agent a prompt, or broadcast an event, at every time that `cron` or `intervalSeconds` names. `cron` has
   * five fields and is read in the time zone `zone`. `missed` says what becomes of due times that passed while nothing
   * could fire: `skip`, `once` or `all`. With `wake` a prompt wakes its agent if it sleeps.
   */
  "schedule.create": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId?: string | null;
      /** When to fire, as five fields: minute, hour, day of month, month, day of week. */
      cron?: string | null;
      /** How long from one due time to the next. */
      intervalSeconds?: number | null;
      /** The time zone, as `Europe/Berlin`. */
      zone?: string;
      /** What the agent is asked to do. */
      prompt?: string | null;
      /** The name of the event. */
      event?: string | null;
      /** What the event carries: any JSON value. */
      data?: unknown;
      /** What happens to due times that passed while nothing could fire. */
      missed?: MissedRuns;
      /** Whether the prompt wakes the agent if it sleeps. */
      wake?: boolean;
      /** The id of the schedule. */
      scheduleId?: string | null;
    };
    result: ScheduleRecord;
  };
  /** The schedules of an agent, or of the whole session, the oldest first. */
  "schedule.list": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId?: string | null;
    };
    result: ScheduleList;
  };
  /** The schedule as it is now. */
  "schedule.get": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the schedule. */
      scheduleId: string;
    };
    result: ScheduleRecord;
  };
  /** Let the schedule no longer fire until it is resumed. */
  "schedule.pause": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the schedule. */
      scheduleId: string;
    };
    result: ScheduleRecord;
  };
  /** Let a paused schedule resume from now: what passed while it was paused does not fire. */
  "schedule.resume": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the schedule. */
      scheduleId: string;
    };
    result: ScheduleRecord;
  };
  /** Remove the schedule. Tasks that it has fired already stay. */
  "schedule.delete": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the schedule. */
      scheduleId: string;
    };
    result: ScheduleRecord;
  };
  /**
   * Take a lock, and wait for it in the same order as the agents. Its token renews and releases it. The wait ends when
   * the lock is had, after `waitSeconds`, and when the connection that asked is closed.
   */
  "lock.acquire": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The name of the template or of the lock. */
      name: string;
      /** How long the lease lasts unless it is renewed. */
      ttlSeconds?: number;
      /** How long to wait for the lock; 0: not at all. */
      waitSeconds?: number;
      /** What others see of who has the lock; `user` unless given. */
      holder?: string | null;
    };
    result: LockRecord;
  };
  /** Let a lease last for `ttlSeconds` from now on. */
  "lock.renew": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The name of the template or of the lock. */
      name: string;
      /** The token that came with the lock. */
      token: number;
      /** How long the lease lasts unless it is renewed. */
      ttlSeconds?: number;
    };
    result: LockRecord;
  };
  /** Give a lock back: the first that waits has it. The answer is the lock as it was. */
  "lock.release": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The name of the template or of the lock. */
      name: string;
      /** The token that came with the lock. */
      token: number;
    };
    result: LockRecord;
  };
  /** Take a lock from whoever holds it: the first that waits has it. The answer is the lock as it was. */
  "lock.break": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The name of the template or of the lock. */
      name: string;
      /** Why, in words for people and agents. */
      reason?: string;
    };
    result: LockRecord;
  };
  /** The locks that are held, by whom, and who waits for them. */
  "lock.list": {
    params: {
      /** The id of the session. */
      sessionId: string;
    };
    result: LockList;
  };
  /** Whether this is the current token of the lock, and what became of it if not. */
  "lock.check": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The name of the template or of the lock. */
      name: string;
      /** The token that came with the lock. */
      token: number;
    };
    result: LockCheck;
  };
  /** The resources that tools touch now: who holds them, and who waits for them. */
  "resource.list": {
    params: {
      /** The id of the session. */
      sessionId: string;
    };
    result: ResourceList;
  };
  /**
   * Send the session's notifications to this connection, from the one after `after` on. 0 is from the start; without
   * it, from now on. If what follows `after` was pruned, the error `log_pruned` has the first number that is kept as
   * `firstSeq`: take `session.snapshot` and subscribe after its `lastSeq`. With `deltas` the pieces of answers come
   * along as they are streamed: these are not numbered (`seq` 0) and not kept. A connection has one subscription for a
   * session; another replaces it. The first call of a method `async.*` in a session subscribes the connection to it
   * from then on, without deltas, unless it was opened as `/ws?notifications=explicit` or has called `events.subscribe`
   * or `events.unsubscribe` for the session.
   */
  "events.subscribe": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** Begin after this number. */
      after?: number | null;
      /** Whether the pieces of answers are sent as they are streamed. */
      deltas?: boolean;
    };
    result: Subscribed;
  };
  /** Stop sending notifications of the session. The answer has the number of the last that was sent. */
  "events.unsubscribe": {
    params: {
      /** The id of the session. */
      sessionId: string;
    };
    result: Subscribed;
  };
  /** A page of the numbered log. */
  "events.list": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** Begin after this number. */
      after?: number;
      /** How many entries at most. */
      limit?: number;
    };
    result: NotificationList;
  };
  /** The MCP servers of the session, with the tools that they have listed so far. */
  "mcp.list": {
    params: {
      /** The id of the session. */
      sessionId: string;
    };
    result: McpServerList;
  };
  /** Start a server now and have it list its tools: otherwise that happens when an agent needs it. */
  "mcp.start": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The name of the template or of the lock. */
      name: string;
    };
    result: McpServerStatus;
  };
  /** The files that an agent keeps for itself with the tool `memory`, by path. */
  "memory.list": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId: string;
    };
    result: MemoryFiles;
  };
  /** A file of an agent's memory, up to a megabyte of it; raises `UnknownFileError`. */
  "memory.read": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId: string;
      /** The file, relative to the memory of the agent. */
      path: string;
    };
    result: MemoryText;
  };
  /** The images and files that came with tasks and messages, the newest first. */
  "attachment.list": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** How many entries at most. */
      limit?: number;
    };
    result: AttachmentList;
  };
  /** An image or a file with its content, by its digest in tasks and messages; raises `UnknownFileError`. */
  "attachment.get": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** What names a tool with its exact arguments, which must be those of the call; or the content of a file. */
      digest: string;
    };
    result: AttachmentContent;
  };
  /** The accounts of providers that the session has asked: how many requests are under way, and who waits. */
  "providers.list": {
    params: {
      /** The id of the session. */
      sessionId: string;
    };
    result: ProviderAccountList;
  };
  /** What people are asked about: by default what waits for a decision; null for all. */
  "approval.list": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** Those in this state; null for all. */
      approvalState?: ApprovalState | null;
      /** How many entries at most. */
      limit?: number;
    };
    result: ApprovalList;
  };
  /** The approval as it is now, with the exact arguments of the call. */
  "approval.get": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the approval, which is that of the step. */
      approvalId: string;
    };
    result: ApprovalRecord;
  };
  /** Allow the call, exactly as it is: nobody can change its arguments. The same decision again changes nothing. */
  "approval.approve": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the approval, which is that of the step. */
      approvalId: string;
      /** What names a tool with its exact arguments, which must be those of the call; or the content of a file. */
      digest?: string | null;
      /** Why, in words for people and agents. */
      reason?: string;
    };
    result: ApprovalRecord;
  };
  /** Refuse the call: its model is told so, with the reason, and continues. */
  "approval.refuse": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the approval, which is that of the step. */
      approvalId: string;
      /** Why, in words for people and agents. */
      reason?: string;
    };
    result: ApprovalRecord;
  };
  /** What agents ask people: by default what waits for an answer; null for all. */
  "question.list": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** Those in this state; null for all. */
      questionState?: QuestionState | null;
      /** How many entries at most. */
      limit?: number;
    };
    result: QuestionList;
  };
  /** The question as it is now. `schema` is the form of its answer: a flat JSON Schema. */
  "question.get": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the question, which is that of the step. */
      questionId: string;
    };
    result: QuestionRecord;
  };
  /**
   * Answer a question: the fields of its form by name, or the value alone if there is one. An answer that does not fit
   * is refused with the code `answer_misfit`, whose `fields` say what is wrong with which field; the question stays
   * open. The same answer again changes nothing.
   */
  "question.answer": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the question, which is that of the step. */
      questionId: string;
      /** The values of the form's fields by name, or the value alone if it has one field. */
      answer: unknown;
    };
    result: QuestionRecord;
  };
  /** Do not answer a question: its agent is told so, with the reason, and continues. */
  "question.refuse": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the question, which is that of the step. */
      questionId: string;
      /** Why, in words for people and agents. */
      reason?: string;
    };
    result: QuestionRecord;
  };
  /** The tools that agents can be granted, and the tool files that cannot be used, each with its error. */
  "tool.list": {
    params: Record<string, never>;
    result: ToolList;
  };
  /** The limits of an agent, or of the session: each with where it was stated and what is used of it now. */
  "limits.get": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId?: string | null;
    };
    result: LimitsReport;
  };
  /**
   * Change limits by name; null resets one, so that what is stated below holds again. It takes effect at once. `scope`
   * is `agent` with an `agentId`, else `session`, unless it is said. Those of the `server` hold for all its sessions,
   * and only the principal `local` may change them.
   */
  "limits.set": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** Limits by name, such as `max_queue_length`; null resets one. */
      limits: Record<string, number | number | null>;
      /** The agent, by its id, its name or an alias. */
      agentId?: string | null;
      /** Whom the limits are for: `agent`, `session` or `server`. */
      scope?: LimitScope | null;
    };
    result: LimitsReport;
  };
  /**
   * Erase the content of conversations that ended longer ago, of mails and messages, and the log before that.
   * `older_than` is written as `30d`, `12h` and the like, or in seconds. What is open stays, and so do dead letters,
   * the user's mail until it is archived, and all that was used. Tasks, mails and messages stay known by their ids,
   * without content. With `dry_run` nothing is changed, and the report tells what would be.
   */
  "session.prune": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** How long what has ended is kept: such as 30d or 12h, or seconds. */
      olderThan?: string | number;
      /** Whether nothing is to be changed: the answer tells what would be. */
      dryRun?: boolean;
    };
    result: PruneReport;
  };
  /** How much room the session takes, by what is in it, and the database of all sessions. */
  "session.storage": {
    params: {
      /** The id of the session. */
      sessionId: string;
    };
    result: StorageReport;
  };
  /**
   * Erase a conversation of an agent: what was said in it, its mails, and what the log tells of it, for good. Its tasks
   * stay known by their ids, without content; dead letters in it are dismissed. Raises `StateError` while something in
   * it waits or runs, and `UnknownThreadError`.
   */
  "task.deleteThread": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId: string;
      /** The id of the conversation that it belongs to. */
      threadId: string;
    };
    result: ThreadSummary;
  };
  /**
   * Delete a room with all that was said in it, for good. Answers that are under way in it are cancelled. A room that
   * is made later under the same id continues with its numbers.
   */
  "room.delete": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the room. */
      roomId: string;
    };
    result: RoomRecord;
  };
  /**
   * Stop the agent and delete it with its conversations, mail, schedules and files, for good. What runs is cancelled,
   * what waits for it is cancelled or archived, its locks are free, and whoever waits for its answer is told that there
   * is none. It leaves its groups; a room in which it is alone goes with it. What it used still counts for the session.
   * Its tasks stay known by their ids, without content: nothing is done twice.
   */
  "async.deleteAgent": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId: string;
    };
    result: AgentStatus;
  };
  /**
   * Make a session: a workspace with its own agents. Its id is chosen unless given; it belongs to the caller. One that
   * `needs` tags is at nodes of the cluster that have them all; without such a node it is refused.
   */
  "session.create": {
    params: {
      /** The id of the session. */
      sessionId?: string | null;
      /** What people call it. */
      title?: string;
      /** Limits by name, such as `max_queue_length`; null resets one. */
      limits?: Record<string, number | number | null> | null;
      /** Tags that a node has to have to take the session. */
      needs?: string[];
    };
    result: SessionSummary;
  };
  /**
   * Let a session need these tags, instead of those that it needed, of the nodes of the cluster that may have it. It
   * goes to one that has them all, if it is elsewhere; the steps under way may finish before. Refused if no node has
   * them that takes sessions.
   */
  "session.setNeeds": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** Tags that a node has to have to take the session. */
      needs: string[];
    };
    result: SessionSummary;
  };
  /** The sessions of the caller, the newest first. */
  "session.list": {
    params: {
      /** How many entries at most. */
      limit?: number;
    };
    result: SessionList;
  };
  /** One session of the caller. */
  "session.get": {
    params: {
      /** The id of the session. */
      sessionId: string;
    };
    result: SessionSummary;
  };
  /** All that can be seen of the session at one moment; subscribe after its `lastSeq` to follow from there. */
  "session.snapshot": {
    params: {
      /** The id of the session. */
      sessionId: string;
    };
    result: Snapshot;
  };
  /**
   * Bring in a session that `whisperer export` wrote to a file on the server's machine; the caller owns it. Only the
   * principal `local` may. It gets its own id, or `sessionId`, which must be free.
   */
  "session.import": {
    params: {
      /** The path of the file, on the machine of the server. */
      file: string;
      /** The id of the session. */
      sessionId?: string | null;
    };
    result: ImportedSession;
  };
  /** Stop all agents of the session and delete everything in it, for good. */
  "session.delete": {
    params: {
      /** The id of the session. */
      sessionId: string;
    };
    result: SessionSummary;
  };
  /** The templates that agents can be made of, and the files that cannot be used, each with its error. */
  "template.list": {
    params: Record<string, never>;
    result: TemplateList;
  };
  /** One template with its definition. */
  "template.get": {
    params: {
      /** The name of the template or of the lock. */
      name: string;
    };
    result: TemplateDetails;
  };
  /** The ids of what is of that kind which begin so; one that is just this comes first. */
  "session.findIds": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** What the ids are of. */
      kind: IdKind;
      /** What the ids begin with. */
      beginning: string;
      /** How many entries at most. */
      limit?: number;
    };
    result: IdList;
  };
  /**
   * After which entries of the log the session can be forked: those around entry `near`, in order. Empty if there are
   * none: the beginning of the log was pruned, or something was deleted before.
   */
  "session.forkPoints": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The number of an entry of the log. */
      near: number;
      /** How many entries at most. */
      limit?: number;
    };
    result: ForkPointList;
  };
  /**
   * Make a session that is as this one was after entry `at` of its log, and continues from there; the caller owns it.
   * Up to there it is played as it was recorded: nothing is asked or done again. `set` are fields of agents that are to
   * be otherwise, by `AGENT.FIELD`. `newSessionId` is chosen unless given; with several `runs` it is how their ids
   * begin. An `at` that does not work is refused with the nearest that do, in `data.points`.
   */
  "session.fork": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** After which entry of the log. */
      at: number;
      /** Fields of agents that are to be otherwise, by `AGENT.FIELD`, such as `writer.prompt`. */
      set?: Record<string, unknown> | null;
      /** What becomes of calls with effects outside. */
      effects?: Effects;
      /** The id of the fork; with several runs, how their ids begin. */
      newSessionId?: string | null;
      /** How many forks are made. */
      runs?: number;
    };
    result: ForkReport;
  };
  /**
   * Lay two sessions of the caller side by side: this one is A, the other one B. Steps are aligned by what caused them,
   * so ids, times and orders do not matter.
   */
  "session.compare": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the session to compare it with. */
      otherSessionId: string;
    };
    result: Comparison;
  };
  /** What the agents of the session have used, each and together; of a task, what all its tree has used. */
  "usage.get": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The id of the task. */
      taskId?: string | null;
    };
    result: UsageReport;
  };
  /**
   * The debug log of an agent: its last entries, or those after the `next` of an earlier answer. `level` is the least
   * that is in it, by default the setting `log_level`.
   */
  "log.read": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The agent, by its id, its name or an alias. */
      agentId: string;
      /** Begin after this number. */
      after?: number | null;
      /** How many entries at most. */
      limit?: number;
      /** The least that is in the log; null for what the server is set to. */
      level?: "debug" | "error" | "info" | "warning" | null;
    };
    result: LogEntries;
  };
  /** Version, model and limits of the server, and who the caller is. */
  "server.info": {
    params: Record<string, never>;
    result: ServerInfo;
  };
  /** This document: all methods with their params and results, as OpenRPC. */
  "rpc.discover": {
    params: Record<string, never>;
    result: Record<string, unknown>;
  };
  /** The nodes that share the database of this server, and how many sessions each has. */
  "cluster.status": {
    params: Record<string, never>;
    result: ClusterStatus;
  };
  /**
   * Let a node give all its sessions to others, and take no more until it is started again. Only the principal `local`
   * may. The steps under way may finish, as when a server ends; `cluster.status` shows how many sessions are left. The
   * last node that takes sessions, or that has the tags which one of its sessions needs, is drained only by `force`:
   * they wait for another then.
   */
  "cluster.drain": {
    params: {
      /** The name of a node of the cluster. */
      node: string;
      /** Whether the node is drained even if no other takes its sessions. */
      force?: boolean;
    };
    result: ClusterStatus;
  };
  /**
   * Let a session go to that node. The answer comes when it is there, or says where it is if that takes long. Only the
   * principal `local` may.
   */
  "cluster.move": {
    params: {
      /** The id of the session. */
      sessionId: string;
      /** The name of a node of the cluster. */
      node: string;
    };
    result: PlacedSession;
  };
}

/** Params by the name of the notification. */
export interface Notifications {
  /** An agent was created. */
  "agent.created": {
    agentId: string;
    name: string;
    description: string;
    createdBy?: string;
  };
  /** An agent was deleted with its conversations, its mail and its schedules. What it used still counts. */
  "agent.deleted": {
    agentId: string;
  };
  /** A conversation of an agent was erased. */
  "thread.deleted": {
    agentId: string;
    threadId: string;
  };
  /** An agent was started: it takes work. */
  "agent.started": {
    agentId: string;
    reason: string;
  };
  /** An agent was paused. */
  "agent.paused": {
    agentId: string;
    reason: string;
  };
  /** An agent was resumed. */
  "agent.resumed": {
    agentId: string;
    reason: string;
  };
  /** An agent was stopped. */
  "agent.stopped": {
    agentId: string;
    reason: string;
  };
  /** An agent went `from` one state `to` another. */
  "agent.state_changed": {
    agentId: string;
    from: AgentState;
    to: AgentState;
    action: string;
    reason?: string;
    sleepingUntil?: number | null;
    wakeEvents?: string[];
    sleepingByWallClock?: boolean;
    pausedLimit?: string;
  };
  /** Until when and for what an agent sleeps was changed. */
  "agent.sleep_changed": {
    agentId: string;
    from: AgentState;
    to: AgentState;
    action: string;
    reason?: string;
    sleepingUntil?: number | null;
    wakeEvents?: string[];
    sleepingByWallClock?: boolean;
    pausedLimit?: string;
  };
  /** An agent has a new definition. */
  "agent.redefined": {
    agentId: string;
    name?: string;
    description?: string;
    missingTools?: string[];
  };
  /** An agent waits for tools that were not provided. */
  "agent.tools_missing": {
    agentId: string;
    tools: string[];
  };
  /** Too many tasks of an agent failed: it is being stopped. */
  "agent.failing": {
    agentId: string;
    taskId: string;
    reason: string;
    restartAt?: number;
  };
  /** A task was accepted. */
  "async.task.queued": {
    agentId: string;
    taskId: string;
    threadId: string;
    kind: TaskKind;
    priority: Priority;
    summary: string;
    mailId?: string;
    by?: string;
    again?: TaskBefore;
  };
  /** A task began to run. */
  "async.task.started": {
    agentId: string;
    taskId: string;
    threadId: string;
    kind: TaskKind;
    attempt: number;
    mailId: string | null;
    priority?: Priority;
    summary?: string;
  };
  /** An agent reported its progress on a task. */
  "async.task.progress": {
    agentId: string;
    taskId: string;
    percent: number | null;
    note: string;
  };
  /** A task was completed; `result` has the channels. */
  "async.task.completed": {
    agentId: string;
    taskId: string;
    result: AnswerTold;
  };
  /** A task asked for more, or its answer was `cut` at its greatest length, and it continues in another. */
  "async.task.continuation": {
    agentId: string;
    taskId: string;
    continuationId: string;
    number: number;
    result: AnswerTold;
    locks?: string[];
    cut?: boolean;
  };
  /** A message went into the task at work in its conversation, before this step of it; the answer is for both. */
  "async.task.joined": {
    agentId: string;
    taskId: string;
    stepId: string;
  };
  /** A task failed. */
  "async.task.error": {
    agentId: string;
    taskId: string;
    state: TaskState;
    error: Failure;
  };
  /** A task was cancelled. */
  "async.task.cancelled": {
    agentId: string;
    taskId: string;
    reason: string;
  };
  /** A person dismissed a dead letter. */
  "async.task.dismissed": {
    agentId: string;
    taskId: string;
  };
  /** The loop of a task crashed and begins again later. */
  "async.task.restarting": {
    agentId: string;
    taskId: string;
    restarts: number;
    notBefore: number;
    error: Failure;
  };
  /** A piece of an answer as it is streamed; not numbered, not kept. */
  "async.task.delta": {
    agentId: string;
    taskId: string;
    stepId: string;
    attempt: number;
    channel: "analysis" | "commentary" | "final";
    text: string;
    skipped?: number;
    offset?: number;
    analysisUntil?: number;
  };
  /** A piece of what a tool writes while it runs; not numbered, not kept. */
  "step.output": {
    agentId: string;
    taskId: string;
    stepId: string;
    text: string;
    skipped?: number;
  };
  /** A model request, a tool call or a compaction began. A request that would be too long becomes a compaction. */
  "step.started": {
    agentId: string;
    taskId: string;
    stepId: string;
    kind: StepKind;
    tool?: string;
    attempt?: number;
    startedAt?: number;
    model?: string;
  };
  /** A model request failed and is repeated. */
  "step.retried": {
    agentId: string;
    taskId: string;
    stepId: string;
    attempt: number;
    error: Failure;
    retryAt: number;
    requests?: number;
    retryAfterSeconds?: number;
    model?: string;
    nextModel?: string;
  };
  /** A model request was cut off; it is repeated when its agent continues, or the step ends. */
  "step.interrupted": {
    agentId: string;
    taskId: string;
    stepId: string;
    attempt: number;
  };
  /** A model request, a tool call or a compaction ended. */
  "step.finished": {
    agentId: string;
    taskId: string;
    stepId: string;
    kind: StepKind;
    state: StepState;
    tool?: string;
    usage?: StepUsage;
    isError?: boolean;
    run?: StepRun;
    error?: Failure;
    requests?: number;
  };
  /** A conversation was made shorter, so that the agent's model can take it. The journal keeps all of it. */
  "context.compacted": {
    agentId: string;
    taskId: string;
    stepId: string;
    threadId: string;
    kind: CompactionKind;
    reason: CompactionReason;
    tokensBefore: number;
    tokensAfter: number;
    window: number;
    steps: number;
    problem?: string;
  };
  /** A mail was accepted. */
  "mail.sent": {
    mailId: string;
    threadId: string;
    sender: string;
    sequence: number;
    recipient: string;
    subject: string;
    priority: Priority;
    replyTo: string | null;
    givenTo?: string;
  };
  /** A mail was delivered, read, replied to, archived or moved to the dead letters. */
  "mail.state_changed": {
    agentId: string;
    mailId: string;
    from?: MailState;
    state: MailState;
    taskId: string | null;
  };
  /** An event was broadcast. */
  "event.broadcast": {
    eventId: string;
    event: string;
    data: unknown;
    sender: string;
    woken: number;
    notified: number;
  };
  /** A subscriber whose queue is full did not get an event. */
  "event.not_taken": {
    agentId: string;
    eventId: string;
    event: string;
  };
  /** A schedule was created. */
  "schedule.created": {
    scheduleId: string;
    agentId: string | null;
    cron: string | null;
    intervalSeconds: number | null;
    zone: string;
    prompt: string | null;
    event: string | null;
    data: unknown;
    missed: MissedRuns;
    wake?: boolean;
    nextAt: number | null;
  };
  /** A schedule was paused or resumed. */
  "schedule.changed": {
    scheduleId: string;
    agentId: string | null;
    paused: boolean;
    nextAt: number | null;
    reason?: string;
  };
  /** A schedule was deleted. */
  "schedule.deleted": {
    scheduleId: string;
    agentId: string | null;
  };
  /** A schedule fired. */
  "schedule.fired": {
    scheduleId: string;
    agentId: string | null;
    dueAt: number;
    nextAt: number | null;
    eventId?: string;
    taskId?: string;
  };
  /** Due times of a schedule do not fire. */
  "schedule.missed": {
    scheduleId: string;
    agentId: string | null;
    count: number;
    policy: MissedRuns;
    reason: string;
    nextAt: number | null;
  };
  /** A room was opened. */
  "room.created": {
    roomId: string;
    kind: RoomKind;
    title: string;
    members: string[];
    hopLimit: number;
  };
  /** A room was deleted with all that was said in it. */
  "room.deleted": {
    roomId: string;
  };
  /** An agent joined a room. */
  "room.member_added": {
    agentId: string;
    roomId: string;
  };
  /** An agent left a room. */
  "room.member_removed": {
    agentId: string;
    roomId: string;
  };
  /** Something was said in a room. */
  "room.message": {
    roomId: string;
    number: number;
    messageId: string;
    sender: string;
    text: string;
    mentions: string[];
    hops: number;
    taskId: string | null;
    parts?: MessagePart[];
  };
  /** A member was asked and answers in a task. */
  "room.answering": {
    agentId: string;
    taskId: string;
    roomId: string;
    number: number;
  };
  /** A member passed. */
  "room.passed": {
    agentId: string;
    taskId: string;
    roomId: string;
    number: number;
  };
  /** A member hears a message while it is at the answer to an earlier one: that answer is for both. */
  "room.joined": {
    agentId: string;
    taskId: string;
    roomId: string;
    number: number;
  };
  /** A member did not answer. */
  "room.unanswered": {
    agentId: string;
    taskId: string;
    roomId: string;
    number: number;
    error: Failure;
  };
  /** A member was not asked. */
  "room.absent": {
    agentId: string;
    roomId: string;
    number: number;
    reason: string;
  };
  /** An answer asked nobody, because agents had reached the limit of asking each other. */
  "room.hop_limit": {
    agentId: string;
    roomId: string;
    number: number;
    mentions: string[];
    hopLimit: number;
  };
  /** An agent asked another and waits for the answer. */
  "switch.began": {
    agentId: string;
    taskId: string;
    stepId: string;
    toAgent: string;
    mailId: string;
    depth: number;
    deadlineAt: number;
  };
  /** An agent no longer waits for another's answer. */
  "switch.ended": {
    agentId: string;
    taskId: string;
    stepId: string;
    toAgent: string;
    mailId: string;
    outcome: string;
    replyId?: string;
  };
  /** Somebody waits for a lock. */
  "lock.waiting": {
    name: string;
    agentId: string | null;
    taskId: string | null;
    waiter: string;
    stepId: string | null;
    waitId?: string;
    holder: string;
    deadlineAt: number;
  };
  /** Somebody no longer waits for a lock. */
  "lock.wait_ended": {
    name: string;
    agentId: string | null;
    taskId: string | null;
    waiter: string;
    stepId: string | null;
    waitId?: string;
    outcome: string;
  };
  /** Somebody has a lock. */
  "lock.acquired": {
    name: string;
    agentId: string | null;
    taskId: string | null;
    holder: string;
    token: number;
    expiresAt: number;
  };
  /** Somebody has a lock for longer. */
  "lock.renewed": {
    name: string;
    agentId: string | null;
    taskId: string | null;
    holder: string;
    token: number;
    expiresAt: number;
  };
  /** A lock was released, or its holder ended. */
  "lock.released": {
    name: string;
    agentId: string | null;
    taskId: string | null;
    holder: string;
    token: number;
  };
  /** The lease of a lock ran out. */
  "lock.expired": {
    name: string;
    agentId: string | null;
    taskId: string | null;
    holder: string;
    token: number;
  };
  /** A person took a lock from whoever had it. */
  "lock.broken": {
    name: string;
    agentId: string | null;
    taskId: string | null;
    holder: string;
    token: number;
    by: string;
    reason: string;
  };
  /** A tool call waits for a person to allow it. */
  "approval.requested": {
    agentId: string;
    taskId: string;
    approvalId: string;
    tool: string;
    digest: string;
  };
  /** A person allowed a tool call. */
  "approval.approved": {
    agentId: string;
    taskId: string;
    approvalId: string;
    tool: string;
    decidedBy: string;
    reason: string;
  };
  /** A person refused a tool call: it does not run. */
  "approval.refused": {
    agentId: string;
    taskId: string;
    approvalId: string;
    tool: string;
    decidedBy: string;
    reason: string;
  };
  /** The task of a tool call that waited for a person, or had just been allowed, ended before. */
  "approval.withdrawn": {
    agentId: string;
    taskId: string;
    approvalId: string;
    tool: string;
    state: ApprovalState;
    reason: string;
  };
  /** An agent asks a person, and its task waits for the answer. `question` is the beginning of it. */
  "question.asked": {
    agentId: string;
    taskId: string;
    questionId: string;
    question: string;
    deadlineAt: number | null;
  };
  /** A person answered a question: the answer is the result of the call. */
  "question.answered": {
    agentId: string;
    taskId: string;
    questionId: string;
    decidedBy: string;
    reason: string;
  };
  /** A person does not want to answer a question: the agent is told so. */
  "question.refused": {
    agentId: string;
    taskId: string;
    questionId: string;
    decidedBy: string;
    reason: string;
  };
  /** Nobody answered a question before its time was over, or before its task ended. */
  "question.withdrawn": {
    agentId: string;
    taskId: string;
    questionId: string;
    state: QuestionState;
    reason: string;
  };
  /** A limit was reached: `used` is what is used or wanted, `max` what there may be. */
  "limit.reached": {
    scope: LimitScope;
    limit: string;
    agentId: string | null;
    taskId: string | null;
    used: number;
    max: number;
    action: LimitAction;
    retryAfterSeconds?: number;
    account?: string;
  };
  /** The limits of an agent, the session or the server were changed; null resets one. */
  "limits.changed": {
    scope: LimitScope;
    agentId: string | null;
    limits: Record<string, number | null>;
  };
  /** Nobody asks the account until `retry_at`: the provider asks for that, or is down. All requests wait. */
  "provider.held": {
    account: string;
    state: GateState;
    retryAt: number;
    waiting: number;
    reason: string;
  };
  /** The provider takes requests of the account again; those that wait are made, first a few and then more. */
  "provider.opened": {
    account: string;
  };
  /** One of several models of an agent cannot be asked, or refuses its requests: others are asked in its place. */
  "model.skipped": {
    agentId: string;
    model: string;
    reason: string;
    until?: number;
  };
  /** An MCP server was started, or connected to. */
  "mcp.server_started": {
    name: string;
  };
  /** An MCP server could not be started, or died; it is started again when it is needed. */
  "mcp.server_failed": {
    name: string;
    error: string;
    willRetryAt: number;
  };
  /** An MCP server was stopped with its session. */
  "mcp.server_stopped": {
    name: string;
  };
  /** An MCP server listed which tools it has; `problems` says which were left out, and why. */
  "mcp.tools_listed": {
    name: string;
    tools: string[];
    problems: string[];
  };
  /** An agent is granted tools that their MCP servers do not have. */
  "mcp.tools_missing": {
    agentId: string;
    tools: string[];
  };
  /** A tool call waits for its turn: others touch what it touches. Its agent continues by itself. */
  "resource.waiting": {
    agentId: string;
    taskId: string;
    stepId: string;
    resources: string[];
    access: string;
    holders: string[];
  };
  /** A tool call that waited for its turn has it, and begins. */
  "resource.granted": {
    agentId: string;
    taskId: string;
    stepId: string;
    resources: string[];
    access: string;
    waitedSeconds: number;
  };
  /** The session was opened again: tool calls no longer wait for their turn, nor people for locks. */
  "session.opened": {
    clockOffsetSeconds?: number;
  };
  /**
   * The wall clock was set, or the session has taken its time over: durations are not affected, cron and sleeps until a
   * time go by the new one.
   */
  "clock.changed": {
    clockOffsetSeconds: number;
  };
  /**
   * What ended before a time was erased, and the log begins later: whoever is not past `first_seq` takes a snapshot.
   */
  "session.pruned": {
    before: number;
    firstSeq: number;
    threads: number;
  };
  /** What stood here was erased with the agent, the room or the thread that it was about. Its number stays. */
  "log.erased": Record<string, never>;
  /** What came before was pruned, so that a client that was away missed it: the next is `first_seq`. */
  "log.skipped": {
    firstSeq: number;
  };
  /** The session was deleted or the server ends: nothing more comes. Not numbered, not kept. */
  "session.closed": Record<string, never>;
}

export type MethodName = keyof Methods;
export type Params<M extends MethodName> = Methods[M]["params"];
export type Result<M extends MethodName> = Methods[M]["result"];

export type NotificationName = keyof Notifications;

/** A notification with that name. `seq` is 0 for what is not kept: the deltas of a stream. */
export interface NotificationOf<N extends NotificationName> {
  seq: number;
  sessionId: string;
  name: N;
  cause: string;
  at: number;
  params: Notifications[N];
}

/** One entry of a session's numbered log; its `name` tells what its `params` are. */
export type Notification = { [N in NotificationName]: NotificationOf<N> }[NotificationName];
