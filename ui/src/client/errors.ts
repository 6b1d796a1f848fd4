/** The server answered with an error. `data.code` is the stable code, `data.requestId` leads to the server's log. */
export class RpcError extends Error {
  override readonly name = "RpcError";

  constructor(
    readonly code: number,
    message: string,
    readonly data: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }
}

/** There is no connection. A request that was `sent` may have been carried out; one that was not had no effect. */
export class ConnectionLostError extends Error {
  override readonly name = "ConnectionLostError";

  constructor(
    message: string,
    readonly sent: boolean,
  ) {
    super(message);
  }
}

/** The server does not let this client in: its token is wrong, or the page is not one that it trusts. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";

  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}
