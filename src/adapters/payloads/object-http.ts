import { Agent } from "undici";
import { byteSlice } from "../../platform/http/byte-slice.ts";
import type { PayloadRange, PayloadReading } from "../../ports/payload-store.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { systemClock } from "../system-clock.ts";

/*
 * What the stores that speak HTTP share: connections, another try where that helps, and what statuses mean. The address is an
 * operator's setting, not a playbook's: no guard stands in between.
 */

/** One request; `body` gives the bytes anew for each try. */
export interface ObjectRequest {
  method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  url: URL;
  headers: Record<string, string>;
  body?: () => AsyncIterable<Uint8Array>;
  signal?: AbortSignal;
}

/** An answer whose body is still to be read, or dropped by {@link dropBody}. */
export interface ObjectAnswer {
  status: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  body: AsyncIterable<Uint8Array> & { dump(): Promise<void>; text(): Promise<string> };
}

/** Connections to one service of objects. */
export interface ObjectClient {
  /** Each try is made with what `make` gives: a signature is good for a time. Throws `FlowError` UNAVAILABLE. */
  send(make: () => Promise<ObjectRequest>): Promise<ObjectAnswer>;
  /** Ends at once. */
  close(): Promise<void>;
}

const CONNECT_MS = 5_000;
/** Longest silence before an answer's head and within its body. */
const SILENCE_MS = 30_000;
const CONNECTIONS = 32;
const TRIES = 3;
const PAUSE_MS = 100;

/** Opens nothing yet. `what` names the store in errors: `The store s3`. */
export function createObjectClient(what: string): ObjectClient {
  const agent = new Agent({
    connections: CONNECTIONS,
    connect: { timeout: CONNECT_MS },
    headersTimeout: SILENCE_MS,
    bodyTimeout: SILENCE_MS,
  });
  const once = async ({ method, url, headers, body, signal }: ObjectRequest): Promise<ObjectAnswer> => {
    const answer = await agent.request({
      ...{ origin: url.origin, path: url.pathname + url.search, method, headers },
      ...(body !== undefined && { body: body() as never }),
      ...defined({ signal }),
    });
    return { status: answer.statusCode, headers: answer.headers, body: answer.body };
  };
  return {
    async send(make) {
      for (let tries = 1; ; tries += 1) {
        const request = await make();
        let why: string;
        let cause: unknown;
        try {
          const answer = await once(request);
          if (!isPassing(answer.status)) return answer;
          await dropBody(answer);
          why = `it answered ${answer.status}`;
        } catch (error) {
          request.signal?.throwIfAborted();
          why = innermost(error);
          cause = error;
        }
        if (tries === TRIES) {
          throw new FlowError("UNAVAILABLE", `${what} cannot be reached at the moment: ${why}. Try again later`, {
            cause,
          });
        }
        await systemClock.sleep(PAUSE_MS * 4 ** (tries - 1) * (0.5 + Math.random()), request.signal);
      }
    },
    close: () => agent.destroy(),
  };
}

/** Reads and discards the rest of an answer, so that its connection can be used again. */
export async function dropBody({ body }: ObjectAnswer): Promise<void> {
  await body.dump().catch(() => undefined);
}

/** The answer to a GET as a payload, or the requested part; undefined for 404. Throws `FlowError` NOT_STORED. */
export async function readingOf(
  what: string,
  answer: ObjectAnswer,
  range: PayloadRange | undefined,
): Promise<PayloadReading | undefined> {
  if (answer.status === 404) {
    await dropBody(answer);
    return undefined;
  }
  if (answer.status !== 200 && answer.status !== 206) throw await refusedBy(what, "reading", answer);
  const body = checked(what, answer.body);
  if (range === undefined) return { bytes: wholeLength(answer), body };
  // A service may return more than requested, or everything (RFC 9110, section 14.2): its answer says where it starts.
  const from = Number(/^bytes (\d+)-/.exec(String(answer.headers["content-range"]))?.[1] ?? 0);
  const part = { start: range.start - from, end: range.end - from };
  return { bytes: wholeLength(answer), body: byteSlice(body, part) };
}

/** The header that asks for a part. */
export function rangeHeader(range: PayloadRange | undefined): Record<string, string> {
  return range === undefined ? {} : { range: `bytes=${range.start}-${range.end - 1}` };
}

/** The error for an answer that is no success and does not pass by itself. */
export async function refusedBy(what: string, doing: string, answer: ObjectAnswer): Promise<FlowError> {
  const text = await answer.body.text().catch(() => "");
  // S3 answers in XML, Cloud Storage in JSON: the code says more than either's page of details.
  const detail =
    /<Code>([^<]{1,80})<\/Code>/.exec(text)?.[1] ?? /"(?:message|error)": ?"([^"]{1,200})"/.exec(text)?.[1];
  const why = `${answer.status}${detail === undefined ? "" : ` ${detail}`}`;
  const hint = HINTS[answer.status] ?? "See the store's own log";
  return new FlowError("NOT_STORED", `${what} refused ${doing} a result: ${why}. ${hint}`);
}

const HINTS: Readonly<Record<number, string>> = {
  400: "Check its settings: the address, the bucket, the region",
  401: "Check its keys or its account",
  403: "Check its keys, and that they may read, write and delete in the bucket",
  404: "Check that the bucket exists, and its name",
  301: "The bucket is in another region: set that",
  413: "The store takes no object of this size: name another store, or auto",
};

/** 408, 429 and what servers say when they have trouble: the same may work in a moment. */
function isPassing(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}

function wholeLength({ status, headers }: ObjectAnswer): number | undefined {
  const text = status === 206 ? /\/(\d+)$/.exec(String(headers["content-range"]))?.[1] : headers["content-length"];
  return typeof text === "string" && /^\d+$/.test(text) ? Number(text) : undefined;
}

/** A body that breaks off is reported as a failure of the store. */
async function* checked(what: string, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (cause) {
    throw new FlowError("UNAVAILABLE", `${what} broke off while a result was read: ${innermost(cause)}. Try again`, {
      cause,
    });
  }
}

function innermost(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return innermost(error.errors[0]);
  return error instanceof Error && error.cause instanceof Error ? innermost(error.cause) : messageOf(error);
}
