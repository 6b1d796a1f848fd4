import { ConnectionLostError, RefusedError } from "./errors";

/**
 * `connecting`: the first attempt is under way. `lost`: there is no connection, and another attempt follows.
 * `refused` and `closed` are final.
 */
export type ConnectionState = "connecting" | "open" | "lost" | "refused" | "closed";

export interface ConnectionOptions {
  /** Where the server is: http(s):// or ws(s)://, with or without `?token=`. */
  url: string;
  /** The server's own page needs none: its cookie is shown. */
  token?: string;
  /** For Node, which has none before version 22. */
  WebSocket?: typeof globalThis.WebSocket;
  /** How long to wait before the first new attempt; each further one waits twice as long. */
  retrySeconds?: number;
  maxRetrySeconds?: number;
}

export interface ConnectionListener {
  /** Told of every state; the error says why it is `lost` or `refused`. */
  changed(state: ConnectionState, error?: Error): void;
  received(frame: string): void;
}

const PROBE_SECONDS = 10;

/** A WebSocket that is opened again whenever it breaks, unless the server refuses it. */
export class Connection {
  readonly #endpoint: URL;
  readonly #options: ConnectionOptions;
  readonly #listener: ConnectionListener;
  #state: ConnectionState = "connecting";
  #socket: WebSocket | null = null;
  #attempts = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(options: ConnectionOptions, listener: ConnectionListener) {
    this.#options = options;
    this.#listener = listener;
    this.#endpoint = endpointOf(options.url, options.token);
    this.#connect();
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** To be called while open. What is sent on a connection that is about to break is lost. */
  send(frame: string): void {
    this.#socket?.send(frame);
  }

  close(): void {
    clearTimeout(this.#retry);
    const socket = this.#socket;
    this.#socket = null;
    this.#change("closed", new ConnectionLostError("The client was closed.", false));
    socket?.close();
  }

  #connect(): void {
    const socket = new (this.#options.WebSocket ?? globalThis.WebSocket)(this.#endpoint.href);
    let wasOpen = false;
    this.#socket = socket;
    socket.onopen = () => {
      if (socket !== this.#socket) return;
      wasOpen = true;
      this.#change("open");
    };
    socket.onmessage = (event: MessageEvent) => {
      if (socket !== this.#socket) return;
      this.#attempts = 0;
      this.#listener.received(String(event.data));
    };
    socket.onerror = () => {}; // a close follows, and says as much
    socket.onclose = (event: CloseEvent) => {
      if (socket !== this.#socket) return;
      if (wasOpen) this.#lose(`The connection was lost (${event.reason || `code ${event.code}`}).`);
      else void this.#findOutWhy(socket);
    };
  }

  /** A browser does not tell why a WebSocket could not be opened, but it does for an ordinary request. */
  async #findOutWhy(socket: WebSocket): Promise<void> {
    const refusal = await this.#refusal();
    if (socket !== this.#socket) return;
    if (refusal === null) this.#lose(`The server at ${this.#endpoint.host} cannot be reached.`);
    else this.#change("refused", refusal);
  }

  /** Why the server refuses this client, if it does. From a page of another origin that cannot be found out. */
  async #refusal(): Promise<RefusedError | null> {
    const probe = new URL(this.#endpoint);
    probe.protocol = probe.protocol === "wss:" ? "https:" : "http:";
    probe.pathname = probe.pathname.replace(/ws$/, "metrics");
    const token = probe.searchParams.get("token");
    probe.search = "";
    const headers: HeadersInit = token === null ? {} : { authorization: `Bearer ${token}` };
    try {
      const answer = await fetch(probe, { headers, signal: AbortSignal.timeout(PROBE_SECONDS * 1000) });
      const isRefused = [401, 403, 421].includes(answer.status);
      return isRefused ? new RefusedError((await answer.text()).trim(), answer.status) : null;
    } catch {
      return null; // it cannot be reached at all
    }
  }

  #lose(message: string): void {
    const { retrySeconds = 0.25, maxRetrySeconds = 10 } = this.#options;
    const longest = Math.min(maxRetrySeconds, retrySeconds * 2 ** this.#attempts++);
    const delaySeconds = longest * (0.5 + Math.random() / 2); // so that the clients of a server do not come all at once
    this.#socket = null;
    this.#retry = setTimeout(() => this.#connect(), delaySeconds * 1000);
    this.#change("lost", new ConnectionLostError(message, false));
  }

  #change(state: ConnectionState, error?: Error): void {
    this.#state = state;
    this.#listener.changed(state, error);
  }
}

/**
 * The address of the WebSocket. A token in the options goes before one in the address. Only what is subscribed to is to
 * come: else the first call of `async.*` subscribes as well, and what comes by that one is taken for the other.
 */
function endpointOf(url: string, token: string | undefined): URL {
  const endpoint = new URL(url);
  endpoint.protocol = endpoint.protocol.replace("http", "ws");
  endpoint.hash = "";
  if (!endpoint.pathname.endsWith("/ws")) endpoint.pathname = `${endpoint.pathname.replace(/\/$/, "")}/ws`;
  if (token !== undefined) endpoint.searchParams.set("token", token);
  endpoint.searchParams.set("notifications", "explicit");
  return endpoint;
}
