import type { MethodName, Notification, Params, Result, Subscribed } from "./api";
import { Connection, type ConnectionOptions, type ConnectionState } from "./connection";
import { ConnectionLostError, RpcError } from "./errors";

export * from "./api";
export type { ConnectionState } from "./connection";
export { ConnectionLostError, RefusedError, RpcError } from "./errors";

export interface ClientOptions extends ConnectionOptions {
  /** Told of every change of the connection, with the reason when there is none any more. */
  onState?: (state: ConnectionState, error?: Error) => void;
}

export interface SubscribeOptions {
  /** Begin after this number: 0 is from the start. Without it, begin now. */
  after?: number;
  /** When the session was created that is meant: the subscription to another of the same id ends at once. */
  createdAt?: number;
  /** Whether the pieces of answers are sent too, as they are streamed. */
  deltas?: boolean;
  /** Told if the subscription ends by itself: its session is gone, or the server refuses this client. */
  onEnd?: (error: Error) => void;
}

export interface Subscription {
  readonly sessionId: string;
  /** The number of the newest notification that was handed out. */
  readonly cursor: number;
  /** Hand out nothing more. */
  close(): Promise<void>;
}

const ASK_AGAIN_SECONDS = 0.25;
const INVALID_PARAMS = -32602;
const NOT_FOUND = -32004;

/** The params of a method; they can be left out where all of them can. */
type Arguments<M extends MethodName> = Record<string, never> extends Params<M> ? [Params<M>?] : [Params<M>];

interface Request {
  method: MethodName;
  frame: string;
  resolve: (result: unknown) => void;
  reject: (error: Error) => void;
}

interface Feed {
  sessionId: string;
  cursor: number | null;
  /** When the session was created that it follows: another of the same id has another log. */
  createdAt: number | null;
  deltas: boolean;
  /** Whether the server was asked for it on this connection. */
  isAsked: boolean;
  take: (note: Notification) => void;
  begun: () => void;
  ended: (error: Error) => void;
}

/**
 * Calls methods of a server and follows its sessions. It connects at once, and again whenever the connection breaks.
 *
 * Calls made while it first connects wait for that. At a break, requests that were not answered fail with
 * `ConnectionLostError`, as do those made before there is a connection again: nothing is sent twice, or late.
 */
export class Client {
  readonly #connection: Connection;
  readonly #unsent = new Map<number, Request>();
  readonly #unanswered = new Map<number, Request>();
  readonly #feeds = new Map<string, Feed>();
  readonly #closing = new Map<string, Promise<void>>();
  #lastId = 0;
  #error: Error | undefined;

  constructor(options: ClientOptions) {
    this.#connection = new Connection(options, {
      received: (frame) => this.#take(JSON.parse(frame)),
      changed: (state, error) => {
        this.#error = error;
        if (state === "open") this.#resume();
        else this.#break(state, error);
        options.onState?.(state, error);
      },
    });
  }

  get state(): ConnectionState {
    return this.#connection.state;
  }

  /** Call a method. Fails with `RpcError` if the server says no, else with what is wrong with the connection. */
  call<M extends MethodName>(method: M, ...[params]: Arguments<M>): Promise<Result<M>> {
    return new Promise((resolve, reject) => this.#request(method, params ?? {}, resolve, reject));
  }

  /**
   * Hand out the notifications of a session, in order, each once, over all breaks of the connection. The promise is
   * kept when the server has agreed. A client has one subscription for a session. Where the log was pruned before it
   * could be handed out, a `log.skipped` without a number stands in its place: take a snapshot.
   */
  async subscribe(
    sessionId: string,
    options: SubscribeOptions,
    onNotification: (note: Notification) => void,
  ): Promise<Subscription> {
    await this.#closing.get(sessionId); // what is still on its way is none of the new subscription
    if (this.#feeds.has(sessionId)) throw new Error(`There is a subscription to '${sessionId}'. Close it first.`);
    if (this.state === "refused" || this.state === "closed") throw this.#error;
    const { after = null, createdAt = null, deltas = false, onEnd } = options;
    return new Promise((resolve, reject) => {
      let hasBegun = false;
      const feed: Feed = {
        sessionId,
        cursor: after,
        createdAt,
        deltas,
        isAsked: false,
        take: onNotification,
        begun: () => {
          hasBegun = true;
          resolve(subscription);
        },
        ended: (error) => (hasBegun ? onEnd?.(error) : reject(error)),
      };
      const subscription: Subscription = {
        sessionId,
        get cursor() {
          return feed.cursor ?? 0;
        },
        close: () => this.#unsubscribe(feed),
      };
      this.#feeds.set(sessionId, feed);
      if (this.state !== "lost") this.#ask(feed);
    });
  }

  /** End the connection and everything that waits for it. */
  close(): void {
    this.#connection.close();
  }

  #resume(): void {
    for (const [id, request] of this.#unsent) this.#send(id, request);
    this.#unsent.clear();
    for (const feed of this.#feeds.values()) if (!feed.isAsked) this.#ask(feed);
  }

  #break(state: ConnectionState, error: Error | undefined): void {
    const [unsent, unanswered] = [[...this.#unsent.values()], [...this.#unanswered.values()]];
    this.#unsent.clear();
    this.#unanswered.clear();
    for (const feed of this.#feeds.values()) feed.isAsked = false;
    for (const request of unsent) request.reject(failed(request, error, false));
    for (const request of unanswered) request.reject(failed(request, error, true));
    if (state === "lost") return;
    const feeds = [...this.#feeds.values()];
    this.#feeds.clear();
    for (const feed of feeds) feed.ended(error as Error);
  }

  #send(id: number, request: Request): void {
    this.#unanswered.set(id, request);
    this.#connection.send(request.frame);
  }

  /** What is to be done with the answer is done at once: what comes after it may stand in the same packet. */
  #request<M extends MethodName>(
    method: M,
    params: object,
    resolve: (result: Result<M>) => void,
    reject: (error: Error) => void,
  ): void {
    const id = ++this.#lastId;
    const frame = JSON.stringify({ jsonrpc: "2.0", id, method, params });
    const request: Request = { method, frame, resolve: (result) => resolve(result as Result<M>), reject };
    if (this.state === "open") this.#send(id, request);
    else if (this.state === "connecting") this.#unsent.set(id, request);
    else reject(failed(request, this.#error, false));
  }

  #ask(feed: Feed): void {
    feed.isAsked = true;
    const { sessionId, deltas, cursor: after } = feed;
    this.#request(
      "events.subscribe",
      { sessionId, deltas, after },
      (answer) => this.#begin(feed, answer),
      (error) => this.#refuse(feed, error),
    );
  }

  #begin(feed: Feed, answer: Subscribed): void {
    feed.createdAt ??= answer.createdAt;
    if (feed.createdAt === answer.createdAt) {
      feed.cursor ??= answer.after;
      feed.begun();
    } else {
      void this.#unsubscribe(feed);
      feed.ended(replaced(feed));
    }
  }

  #refuse(feed: Feed, error: Error): void {
    if (!(error instanceof RpcError)) return; // it is asked for again, or was ended, as the connection came to be
    if (this.#feeds.get(feed.sessionId) !== feed) return;
    if (error.data.code === "closed") {
      this.#askLater(feed);
      return;
    }
    if (error.data.code === "log_pruned" && this.#skip(feed, error)) return;
    this.#feeds.delete(feed.sessionId);
    const isShorter = feed.createdAt !== null && error.code === INVALID_PARAMS; // the log had more in it before
    feed.ended(isShorter ? replaced(feed) : error);
  }

  /** What the feed has not seen was pruned: it continues with the first that is kept, and says that it does. */
  #skip(feed: Feed, { data }: RpcError): boolean {
    const firstSeq = data.firstSeq;
    if (typeof firstSeq !== "number" || firstSeq <= (feed.cursor ?? 0) + 1) return false;
    feed.cursor = firstSeq - 1;
    const { sessionId } = feed;
    feed.take({ seq: 0, sessionId, name: "log.skipped", cause: "", at: Date.now() / 1000, params: { firstSeq } });
    if (this.#feeds.get(sessionId) === feed && this.state === "open") this.#ask(feed);
    return true;
  }

  /** The server has closed the session. If it was deleted, the answer will be that there is none. */
  #askLater(feed: Feed): void {
    feed.isAsked = false;
    setTimeout(() => {
      const isWanted = this.#feeds.get(feed.sessionId) === feed && !feed.isAsked;
      if (isWanted && this.state === "open") this.#ask(feed);
    }, ASK_AGAIN_SECONDS * 1000);
  }

  async #unsubscribe(feed: Feed): Promise<void> {
    const { sessionId } = feed;
    if (this.#feeds.get(sessionId) !== feed) return;
    this.#feeds.delete(sessionId);
    const gone = this.call("events.unsubscribe", { sessionId }).then(
      () => {},
      () => {}, // without a connection, or a session, there is nothing to unsubscribe from
    );
    this.#closing.set(sessionId, gone);
    await gone;
    if (this.#closing.get(sessionId) === gone) this.#closing.delete(sessionId);
  }

  #take(message: Incoming): void {
    if ("method" in message) {
      this.#hand(message);
      return;
    }
    const request = this.#unanswered.get(message.id);
    this.#unanswered.delete(message.id);
    if (message.error === undefined) request?.resolve(message.result);
    else request?.reject(new RpcError(message.error.code, message.error.message, message.error.data));
  }

  #hand({ method, params: { sessionId, seq, cause, at, ...params } }: Pushed): void {
    const feed = this.#feeds.get(sessionId);
    if (feed === undefined) return;
    if (method === "session.closed") {
      this.#askLater(feed);
      return;
    }
    if (seq > 0) {
      if (feed.cursor !== null && seq <= feed.cursor) return;
      feed.cursor = seq;
    }
    feed.take({ seq, sessionId, name: method, cause, at, params } as Notification);
  }
}

interface Pushed {
  method: string;
  params: { sessionId: string; seq: number; cause: string; at: number };
}

interface Answered {
  id: number;
  result?: unknown;
  error?: { code: number; message: string; data?: Record<string, unknown> };
}

type Incoming = Pushed | Answered;

function failed(request: Request, error: Error | undefined, sent: boolean): Error {
  if (!(error instanceof ConnectionLostError)) return error ?? new ConnectionLostError("There is no connection.", sent);
  const outcome = sent ? "may or may not have been carried out" : "was not sent";
  return new ConnectionLostError(`${error.message} ${request.method} ${outcome}.`, sent);
}

function replaced({ sessionId }: Feed): RpcError {
  const message = `The session '${sessionId}' was deleted, and another has its id now. Subscribe to that one from 0.`;
  return new RpcError(NOT_FOUND, message, { code: "unknown_session" });
}
