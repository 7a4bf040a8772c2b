import type { Readable } from "node:stream";
import { type Context, Hono } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { Secret } from "../../platform/crypto/secret.ts";
import { LINK_BODY_BYTES_MAX } from "../../schema/api/waits/approvals.ts";
import { APPROVAL_LINK_ROUTES } from "../../schema/routes/steering.ts";
import { HOOK_ROUTES } from "../../schema/routes/triggers.ts";
import { HOOK_BYTES_MAX } from "../../schema/triggers/deliveries.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { noSuchRoute } from "../http/errors.ts";
import { BODY_BYTES_MAX, limitedBody, readBody } from "../http/read-body.ts";
import { unknownOrigin } from "./cors.ts";
import type { GatewayEnvironment } from "./request-context.ts";
import { sessionOf } from "./session-token.ts";

/** What the proxy is made of. */
export interface ProxyDeps {
  /** Passes a request on to the server. */
  forward(request: {
    method: string;
    path: string;
    headers: Readonly<Record<string, string>>;
    body: Uint8Array | AsyncIterable<Uint8Array> | undefined;
    /** Its answer may be silent for as long as the caller waits. */
    mayBeSilent: boolean;
    signal: AbortSignal;
  }): Promise<{ status: number; headers: Readonly<Record<string, string | string[] | undefined>>; body: Readable }>;
  /** The operator's token: with it alone the server believes whose call it is. Undefined for a server without tokens. */
  serverToken: Secret | undefined;
  /** GATEWAY_AUTH_BYPASS: every call is the operator's. */
  bypass: boolean;
  /** Aborted when the gateway stops. */
  stopping: AbortSignal;
}

const MCP_PATH = "/mcp";
const HOOK_METHODS = Object.values(HOOK_ROUTES).map(({ method }) => method.toUpperCase());
const LINK_METHODS = Object.values(APPROVAL_LINK_ROUTES).map(({ method }) => method.toUpperCase());
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/**
 * The server's API for those who have a session: `/flow/{rest}` is its `/api/{rest}`, and `/mcp` its MCP server. Whether the
 * session is valid, and what its user may do, the server decides with every call, by its database: nothing is kept here that
 * could be out of date. Health needs no session, as there, `/hooks/{rest}`, whose senders the server knows by what they sign, and `/approve/{token}`, which says itself what it is for.
 */
export function proxyRoutes(deps: ProxyDeps) {
  const pass = (c: Context<GatewayEnvironment>) =>
    forwarded(c, deps, apiPath(c), { ...requestHeaders(c), ...identity(c, deps) });
  return new Hono<GatewayEnvironment>()
    .get("/flow/health", (c) => forwarded(c, deps, "/api/health", requestHeaders(c)))
    .on(HOOK_METHODS, "/hooks/:rest{.+}", (c) => forwarded(c, deps, hookPath(c), hookHeaders(c), HOOK_BYTES_MAX))
    .on(LINK_METHODS, "/approve/:token", (c) =>
      forwarded(c, deps, linkPath(c), { ...requestHeaders(c), ...knownIdentity(c, deps) }, LINK_BODY_BYTES_MAX),
    )
    .on(METHODS, "/flow/:rest{.+}", pass)
    .on(METHODS, MCP_PATH, (c) => {
      // As the protocol demands; a browser names the page with every call.
      const origin = c.req.header("origin");
      if (origin !== undefined && c.var.isAllowedOrigin !== true) throw unknownOrigin(origin);
      const path = `${MCP_PATH}${new URL(c.req.url).search}`;
      return forwarded(c, deps, path, { ...requestHeaders(c), ...identity(c, deps) });
    });
}

/** The address as it came, so that it cannot mean something else behind this gateway than it does here. */
function apiPath(c: Context): string {
  const { pathname, search, searchParams } = new URL(c.req.url);
  // `/flow/../x` is invalid, however it passed the router; nor is what a proxy before the server could read as that.
  if (!pathname.startsWith("/flow/") || GOES_UP.test(decoded(pathname))) return noSuchRoute(c);
  for (const name of searchParams.keys()) {
    if (name.trim().toLowerCase() !== "include_data") continue;
    const why = "secrets are not shown through the gateway; an operator reads them from the server itself";
    throw new FlowError("FORBIDDEN", `'include_data' is refused: ${why}`);
  }
  return `/api${pathname.slice("/flow".length)}${search}`;
}

/** The address of a delivery as it came: below `/hooks/` nothing else is served. */
function hookPath(c: Context): string {
  const { pathname, search } = new URL(c.req.url);
  if (!pathname.startsWith("/hooks/") || GOES_UP.test(decoded(pathname))) return noSuchRoute(c);
  return `${pathname}${search}`;
}

/** The address of a link: a token has no character that is written otherwise. */
function linkPath(c: Context): string {
  const { pathname } = new URL(c.req.url);
  return /^\/approve\/[\w.-]+$/.test(pathname) ? pathname : noSuchRoute(c);
}

/** The user, where the caller has a session; a link may want one, and needs none otherwise. */
function knownIdentity(c: Context<GatewayEnvironment>, deps: ProxyDeps): Record<string, string> {
  try {
    return identity(c, deps);
  } catch (error) {
    if (error instanceof FlowError && (error.code === "UNAUTHENTICATED" || error.code === "FORBIDDEN")) return {};
    throw error;
  }
}

/**
 * All headers of a delivery, because any may be signed or prove something, but those that a server believes of a gateway or a proxy, a
 * browser's cookies, and those that are about the connection.
 */
function hookHeaders(c: Context): Record<string, string> {
  const ofConnection = (c.req.header("connection") ?? "").split(",").map((name) => name.trim().toLowerCase());
  const given = Object.entries(c.req.header()).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && !NOT_PASSED.test(entry[0]) && !ofConnection.includes(entry[0]),
  );
  return Object.fromEntries(given);
}

const NOT_PASSED =
  /^(?:x-flow-.*|x-forwarded-.*|forwarded|x-real-ip|cookie|host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|content-length)$/;

/** A segment `.` or `..`, also with parameters (`..;`), once the address is decoded. */
const GOES_UP = /[/\\]\.\.?(?:[/\\;]|$)/;

function decoded(pathname: string): string {
  try {
    return decodeURIComponent(pathname);
  } catch {
    // No text: the server refuses it.
    return pathname;
  }
}

/** The user in whose name the server is called. Never without a session, unless configured so. */
function identity(c: Context<GatewayEnvironment>, { serverToken, bypass }: ProxyDeps): Record<string, string> {
  const operator = serverToken === undefined ? {} : { authorization: `Bearer ${serverToken.reveal()}` };
  if (bypass) return operator;
  const { client: address } = c.var;
  return { ...operator, "x-flow-session": sessionOf(c), ...defined({ "x-flow-address": address }) };
}

/** An answer of this length that is no stream is sent at once, which costs a fraction of a stream. */
const AT_ONCE_BYTES_MAX = 262_144;

async function forwarded(
  c: Context<GatewayEnvironment>,
  deps: ProxyDeps,
  path: string,
  headers: Readonly<Record<string, string>>,
  bytesMax = BODY_BYTES_MAX,
): Promise<Response> {
  // Aborted when the caller leaves. A gateway that stops answers what is under way, and ends live streams alone.
  const { signal } = c.req.raw;
  try {
    const body = await bodyOf(c.req.raw, bytesMax);
    const { method } = c.req;
    // An MCP call is answered when its tool has ended, a delivery maybe with its execution; until then nothing is said where no progress is.
    const mayBeSilent = c.req.path === MCP_PATH || c.req.path.startsWith("/hooks/");
    const answer = await deps.forward({ method, path, headers, body, mayBeSilent, signal });
    return await answered(c, answer, deps.stopping);
  } catch (error) {
    if (signal.aborted) throw new FlowError("CANCELLED", "The caller left before the answer", { cause: error });
    throw error;
  }
}

async function answered(
  c: Context<GatewayEnvironment>,
  { status, headers, body }: Awaited<ReturnType<ProxyDeps["forward"]>>,
  stopping: AbortSignal,
): Promise<Response> {
  // What one caller may see is not what the next one may: nothing is used again unasked.
  c.header("cache-control", "private, no-cache");
  for (const name of ANSWER_HEADERS) {
    const value = headers[name];
    if (value !== undefined) c.header(name, Array.isArray(value) ? value.join(", ") : value);
  }
  if (c.req.method === "HEAD" || status === 204 || status === 304) {
    body.resume();
    return c.body(null, status as ContentfulStatusCode);
  }
  const length = headers["content-length"];
  if (Number(length ?? Number.NaN) <= AT_ONCE_BYTES_MAX)
    return c.body(await whole(body), status as ContentfulStatusCode);
  if (typeof length === "string") c.header("content-length", length);
  const isLive = String(headers["content-type"]).startsWith("text/event-stream");
  return c.body(streamOf(body, isLive ? stopping : undefined), status as ContentfulStatusCode);
}

async function whole(body: Readable): Promise<Uint8Array<ArrayBuffer>> {
  try {
    const parts: Buffer[] = [];
    for await (const part of body) parts.push(part as Buffer);
    return Buffer.concat(parts);
  } catch (cause) {
    throw new FlowError("SERVER_UNREACHABLE", "The server's answer broke off; try again", { cause });
  }
}

/**
 * The next part is read when the last one was sent, so that a slow reader makes nothing grow here. Ends when `ending` aborts.
 */
function streamOf(body: Readable, ending: AbortSignal | undefined): ReadableStream<Uint8Array> {
  const parts: AsyncIterator<Buffer> = body[Symbol.asyncIterator]();
  const stop = () => void body.destroy();
  ending?.addEventListener("abort", stop, { once: true });
  body.once("close", () => ending?.removeEventListener("abort", stop));
  if (ending?.aborted === true) stop();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { value, done } = await parts.next();
          if (done === true) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          if (ending?.aborted === true) controller.close();
          else controller.error(error);
        }
      },
      cancel: () => void body.destroy(),
    },
    { highWaterMark: 0 },
  );
}

/** Up to its limit. A body with a length is read at once, any other is streamed and counted on its way. */
async function bodyOf(request: Request, bytesMax: number): Promise<Uint8Array | AsyncIterable<Uint8Array> | undefined> {
  if (request.method === "GET" || request.method === "HEAD") return undefined;
  if (request.headers.has("content-length")) return await readBody(request, bytesMax);
  return request.body === null ? undefined : limitedBody(request, bytesMax);
}

/**
 * Request headers that are passed to the server: a list of those that its routes read, so that no caller's header can be taken
 * for one of this gateway or of a proxy (`authorization`, `x-flow-…`, `x-forwarded-…`, `cookie`, hop-by-hop ones, those that
 * `connection` names).
 */
const REQUEST_HEADERS = [
  "accept",
  "content-type",
  "idempotency-key",
  "if-none-match",
  "if-range",
  "last-event-id",
  "mcp-protocol-version",
  "mcp-session-id",
  "range",
  "traceparent",
  "user-agent",
];

/** Response headers that are passed to the caller. This gateway alone sets the CORS headers. */
const ANSWER_HEADERS = [
  "accept-ranges",
  "allow",
  "cache-control",
  "content-disposition",
  "content-language",
  "content-range",
  "content-security-policy",
  "content-type",
  "etag",
  "last-modified",
  "location",
  "mcp-session-id",
  "referrer-policy",
  "retry-after",
  "www-authenticate",
  "x-accel-buffering",
  "x-frame-options",
  // The server's: its log knows the request by it, and so does the error's body.
  "x-request-id",
  "x-robots-tag",
];

function requestHeaders(c: Context): Record<string, string> {
  const given = REQUEST_HEADERS.map((name) => [name, c.req.header(name)] as const);
  return Object.fromEntries(given.filter((pair): pair is [string, string] => pair[1] !== undefined));
}
