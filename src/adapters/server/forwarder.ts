import { Readable } from "node:stream";
import { type Dispatcher, errors, Pool } from "undici";
import { FlowError, messageOf } from "../../schema/words/errors.ts";

/** A request that is passed on. */
export interface Forwarded {
  method: string;
  /** Below the server's address, with its query. */
  path: string;
  headers: Readonly<Record<string, string>>;
  body: Uint8Array | AsyncIterable<Uint8Array> | undefined;
  /** The answer may be silent for as long as the client waits for it. Default: for a minute. */
  mayBeSilent?: boolean;
  signal: AbortSignal;
}

/** The answer to it, whatever its status. Its body must be read or destroyed. */
export interface ForwardAnswer {
  status: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  body: Readable;
}

/** Passes requests on to one server. */
export interface Forwarder {
  /**
   * Both bodies pass as they come. Rejects with the signal's reason, with what the request's body throws, with `FlowError`
   * SERVER_UNREACHABLE or TIMEOUT when there is no answer, and UNAVAILABLE when too many are under way.
   */
  forward(request: Forwarded): Promise<ForwardAnswer>;
  /** Ends at once, requests under way included. */
  close(): Promise<void>;
}

const CONNECT_MS = 5_000;
/** Shorter than the 5 s after which Node closes a connection that idles: a call that meets the closing would be lost. */
const KEEP_ALIVE_MS = 4_000;
/** Longest silence before an answer, and within it: twice the longest wait that a caller can ask for, and a stream's heartbeat. */
const SILENCE_MS = 60_000;
/** The same within an answer without heartbeats: a server that died silently is noticed after this. */
const LONG_SILENCE_MS = 3_600_000;
/** Requests under way at a time, live streams among them. Each is a connection. */
const FORWARDED_MAX = 4_096;

/** Opens nothing yet: connections are made when they are needed. `url` has no slash at its end. */
export function createForwarder(url: string): Forwarder {
  const { origin, pathname } = new URL(url);
  const prefix = pathname.replace(/\/$/, "");
  const pool = new Pool(origin, {
    // A live stream keeps its connection; with a bound they would wait for each other.
    connections: null,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connect: { timeout: CONNECT_MS },
    headersTimeout: SILENCE_MS,
    bodyTimeout: SILENCE_MS,
  });
  let underWay = 0;
  return {
    async forward({ method, path, headers, body, mayBeSilent = false, signal }) {
      if (underWay >= FORWARDED_MAX)
        throw new FlowError("UNAVAILABLE", "Too many calls are under way through this gateway; try again in a moment");
      underWay += 1;
      let isCounted = true;
      const ended = () => {
        if (isCounted) underWay -= 1;
        isCounted = false;
      };
      const requestBody = given(body);
      try {
        const answer = await pool.request({
          method: method as Dispatcher.HttpMethod,
          path: `${prefix}${path}`,
          headers,
          body: requestBody.body ?? null,
          ...(mayBeSilent && { bodyTimeout: LONG_SILENCE_MS }),
          signal,
        });
        answer.body.once("close", ended);
        return { status: answer.statusCode, headers: answer.headers, body: answer.body };
      } catch (cause) {
        ended();
        signal.throwIfAborted();
        throw requestBody.fault() ?? noAnswer(url, cause);
      }
    },
    close: () => pool.destroy(),
  };
}

/** The body as undici takes it, and its error, which undici would report in its own words. */
function given(body: Forwarded["body"]) {
  let fault: FlowError | undefined;
  async function* watched(parts: AsyncIterable<Uint8Array>) {
    try {
      yield* parts;
    } catch (error) {
      if (error instanceof FlowError) fault = error;
      throw error;
    }
  }
  const isWhole = body === undefined || body instanceof Uint8Array;
  return { body: isWhole ? body : Readable.from(watched(body), { objectMode: false }), fault: () => fault };
}

function noAnswer(url: string, cause: unknown): FlowError {
  if (cause instanceof errors.HeadersTimeoutError || cause instanceof errors.BodyTimeoutError) {
    return new FlowError("TIMEOUT", `The server did not answer within ${SILENCE_MS / 1_000} s`, { cause });
  }
  // The address stays here: callers have no business with it.
  return new FlowError("SERVER_UNREACHABLE", "The server behind the gateway does not answer; try again in a moment", {
    cause: new Error(`${url}: ${messageOf(cause)}`, { cause }),
  });
}
