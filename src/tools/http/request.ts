import { FormData } from "undici";
import * as v from "valibot";
import { isJsonObject, type Json, type JsonObject, setOwn } from "../../schema/words/json.ts";
import { AnyJson, BooleanLike, configurationError, MapOfJson, parseConfig, TextLike } from "../contract/task-config.ts";
import type { ToolCall } from "../contract/tool.ts";
import { resolveHttpAuth, takeUserInfo } from "./auth.ts";
import type { Trust } from "./dispatcher.ts";

/** A request as it goes out, and again after each redirect. */
export interface HttpRequest {
  method: string;
  url: URL;
  /** By lower-case name. */
  headers: Record<string, string | string[]>;
  body: string | FormData | undefined;
  /** Lower-case names of the headers that are secrets of the first origin. */
  secretHeaders: ReadonlySet<string>;
  /** Query parameters that are secrets: left out of the result's `url`. */
  secretQuery: ReadonlySet<string>;
  /** Tokens that were requested for it. */
  requestedTokens: readonly string[];
}

/** A task of kind `http`, parsed. */
export interface HttpTask {
  request: HttpRequest;
  trust: Trust;
  followRedirects: boolean;
}

const HttpConfig = v.object({
  method: v.optional(
    v.pipe(
      v.string("expects text"),
      v.trim(),
      v.toUpperCase(),
      v.regex(/^[A-Z]{1,20}$/, "expects a method such as GET"),
    ),
    "GET",
  ),
  url: v.optional(v.string("expects text")),
  endpoint: v.optional(v.string("expects text")),
  params: v.optional(MapOfJson, {}),
  headers: v.optional(MapOfJson, {}),
  json: v.optional(AnyJson),
  body: v.optional(AnyJson),
  payload: v.optional(AnyJson),
  data: v.optional(AnyJson),
  auth: v.optional(AnyJson),
  verify_ssl: v.optional(BooleanLike, true),
  follow_redirects: v.optional(BooleanLike, true),
  idempotency_key: v.optional(v.union([v.literal(false), TextLike], "expects text, or false for none")),
});

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);
/** Methods whose `data` are query parameters and not a body (language document, section 8). */
const QUERY_METHODS = new Set(["GET", "HEAD", "DELETE"]);

/**
 * The request that a task's keys ask for. Throws FlowError `INVALID_INPUT` for keys that do not fit.
 *
 * One body at most: `json` before `body`, `payload`, `data`. A map or list is sent as JSON, as form fields when the
 * content type says `x-www-form-urlencoded` or `multipart/form-data`; text is sent as it is.
 */
export async function readHttpTask(call: ToolCall): Promise<HttpTask> {
  const config = parseConfig("http", HttpConfig, call.config);
  const url = parseUrl(config.url ?? config.endpoint);
  const auth = await resolveHttpAuth(config.auth, call.auth, call.tokens?.of);
  takeUserInfo(url, auth);

  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(config.headers)) setHeader(headers, name.toLowerCase(), value);
  Object.assign(headers, auth.headers);
  headers["accept"] ??= "*/*";
  headers["accept-encoding"] ??= "gzip, deflate, br";
  headers["user-agent"] ??= "flow";
  if (call.traceparent !== undefined) headers["traceparent"] ??= call.traceparent;
  setIdempotencyKey(headers, config.method, config.idempotency_key, call.taskRunId);

  appendQuery(url, config.params);
  for (const [name, value] of Object.entries(auth.query)) url.searchParams.set(name, value);

  let content = config.json ?? config.body ?? config.payload;
  if (content === undefined && config.data !== undefined) {
    if (!QUERY_METHODS.has(config.method)) content = config.data;
    else if (isJsonObject(config.data)) appendQuery(url, config.data);
    else if (typeof config.data === "string") {
      for (const [name, value] of new URLSearchParams(config.data)) url.searchParams.append(name, value);
    } else
      throw configurationError(`The http task's "data" is the query of a ${config.method}: a map or text is expected.`);
  }
  const body = content === undefined ? undefined : encodeBody(content, headers, config.json !== undefined);

  return {
    request: {
      method: config.method,
      url,
      headers,
      body,
      secretHeaders: new Set(Object.keys(auth.headers)),
      secretQuery: new Set(Object.keys(auth.query)),
      requestedTokens: auth.requested ?? [],
    },
    trust: { verifySsl: config.verify_ssl, ca: auth.ca },
    followRedirects: config.follow_redirects,
  };
}

/** The URL for people: without query and fragment, which may hold secrets. */
export function describeRequest(request: { method: string; url: URL }): string {
  return `${request.method} ${request.url.origin}${request.url.pathname}`;
}

function parseUrl(text: string | undefined): URL {
  if (text === undefined || text.trim() === "") {
    throw configurationError('The http task has no URL: give it as "url" (or "endpoint"), beginning with https://.');
  }
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : undefined;
  if (url?.protocol === "http:" || url?.protocol === "https:") return url;
  // Without its query, where a key may stand.
  const shown = text.split("?")[0]!.slice(0, 200);
  const reason = url === undefined ? "it is not an absolute URL" : `the scheme ${url.protocol} is not supported`;
  throw configurationError(
    `The http task cannot request "${shown}": ${reason}. Use a URL beginning with http:// or https://.`,
  );
}

function setHeader(headers: Record<string, string | string[]>, name: string, value: Json): void {
  if (value === null) return;
  const text = Array.isArray(value) ? value.filter((item) => item !== null).map(scalarText) : scalarText(value);
  setOwn(headers, name, text);
}

function setIdempotencyKey(
  headers: Record<string, string | string[]>,
  method: string,
  key: string | false | undefined,
  taskRunId: string,
): void {
  if (key === false || headers["idempotency-key"] !== undefined) return;
  if (key !== undefined) headers["idempotency-key"] = key;
  else if (!SAFE_METHODS.has(method)) headers["idempotency-key"] = taskRunId;
}

/** Null is dropped, a list repeats the parameter. */
function appendQuery(url: URL, params: JsonObject): void {
  for (const [name, value] of fields(params)) url.searchParams.append(name, value);
}

function* fields(map: JsonObject): Generator<[string, string]> {
  for (const [name, value] of Object.entries(map)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== null) yield [name, scalarText(item)];
    }
  }
}

function scalarText(value: Json): string {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
}

function encodeBody(content: Json, headers: Record<string, string | string[]>, asJson: boolean): string | FormData {
  const type = String(headers["content-type"] ?? "").toLowerCase();
  if (!asJson && isJsonObject(content) && type.startsWith("application/x-www-form-urlencoded")) {
    return new URLSearchParams([...fields(content)]).toString();
  }
  if (!asJson && isJsonObject(content) && type.startsWith("multipart/form-data")) {
    // The client writes this header itself, because it has to name the boundary.
    delete headers["content-type"];
    const form = new FormData();
    for (const [name, value] of fields(content)) form.append(name, value);
    return form;
  }
  if (typeof content === "string" && !asJson) {
    headers["content-type"] ??= looksLikeJson(content) ? "application/json" : "text/plain; charset=utf-8";
    return content;
  }
  headers["content-type"] ??= "application/json";
  return JSON.stringify(content);
}

/** JSON written by a template (`body: '{"a": {{ x }}}'`) is text by the time it comes here. */
function looksLikeJson(text: string): boolean {
  if (!/^\s*[{[]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
