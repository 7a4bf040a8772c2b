import { type Agent, type Dispatcher, request as send } from "undici";
import type { EgressGuard } from "../../platform/http/egress.ts";
import { defined } from "../../schema/words/defined.ts";
import { type JsonObject, setOwn } from "../../schema/words/json.ts";
import { failed, type ToolResult } from "../../schema/words/outcome.ts";
import { abortedResult, answering } from "../contract/task-config.ts";
import type { Tool, ToolCall } from "../contract/tool.ts";
import { decodeBody, readBody } from "./body.ts";
import { createGuardedAgents } from "./dispatcher.ts";
import { requestFailure, statusError } from "./errors.ts";
import { followRedirect, REDIRECTS_MAX } from "./redirect.ts";
import { describeRequest, type HttpRequest, readHttpTask } from "./request.ts";

/** What {@link createHttpTool} takes. */
export interface HttpOptions {
  /** Which addresses may be reached; checked for every connection, so at each redirect too. */
  egress: EgressGuard;
  /** Largest body of an answer, in bytes, as sent and as unpacked. Default 64 MiB. */
  responseBytesMax?: number;
  /** Longest wait for a connection, in milliseconds. Default 10,000. */
  connectTimeoutMs?: number;
}

/**
 * `http`: one request (language document, section 8). Result `{status_code, headers, url, elapsed, data}`; `elapsed` is
 * in seconds, header names are in lower case, `data` is JSON where the body is JSON, else text, else base64 with
 * `encoding: base64` beside it. A status of 400 or more is an error that keeps this result as its data. Never retries:
 * that is the policy's decision.
 */
export function createHttpTool(options: HttpOptions): Tool {
  const agents = createGuardedAgents(options.egress, { connectTimeoutMs: options.connectTimeoutMs ?? 10_000 });
  return {
    defaultTimeoutMs: 60_000,
    run: (call) =>
      answering(async () => {
        const task = await readHttpTask(call);
        const redirects = task.followRedirects ? REDIRECTS_MAX : 0;
        const limit = options.responseBytesMax ?? 64 * 1024 * 1024;
        const result = await exchange(call, task.request, agents.of(task.trust), redirects, limit);
        // A token that was revoked must not be handed out until it would have ended.
        if (result.http?.status === 401) for (const token of task.request.requestedTokens) call.tokens?.forget(token);
        return result;
      }),
    close: () => agents.close(),
  };
}

/** Sends the request and whatever its redirects ask for, and reads the final answer. */
async function exchange(
  call: ToolCall,
  first: HttpRequest,
  dispatcher: Agent,
  redirectsMax: number,
  bytesMax: number,
): Promise<ToolResult> {
  const what = describeRequest(first);
  const startedAt = performance.now();
  let request = first;
  try {
    for (let redirects = 0; ; redirects += 1) {
      call.signal.throwIfAborted();
      const response = await dispatch(request, dispatcher, call.signal);
      const next = redirectsMax === 0 ? undefined : nextRequest(request, response);
      if (next === undefined) return await toResult(request, response, startedAt, bytesMax);
      await response.body.dump({ limit: 64 * 1024, signal: call.signal });
      if (typeof next === "string") return failed("client_error", "REDIRECT_REFUSED", `${what}: ${next}`);
      if (redirects >= redirectsMax) {
        const message = `${what} was redirected more than ${redirectsMax} times, last to ${describeRequest(next)}.`;
        return failed("client_error", "TOO_MANY_REDIRECTS", message);
      }
      request = next;
    }
  } catch (error) {
    if (call.signal.aborted) return abortedResult(call.signal, what);
    return requestFailure(request === first ? what : `${what}, redirected to ${describeRequest(request)},`, error);
  }
}

function dispatch(request: HttpRequest, dispatcher: Agent, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
  return send(request.url, {
    method: request.method as Dispatcher.HttpMethod,
    headers: request.headers,
    body: request.body ?? null,
    dispatcher,
    signal,
  });
}

/** The request that a redirect leads to, undefined without a redirect, or a text that says why it is not followed. */
function nextRequest(request: HttpRequest, response: Dispatcher.ResponseData): HttpRequest | string | undefined {
  try {
    return followRedirect(request, response.statusCode, single(response.headers["location"]));
  } catch (error) {
    const location = single(response.headers["location"]) ?? "";
    return `answered ${response.statusCode} with a location that cannot be followed, "${location.slice(0, 200)}" (${(error as Error).message}).`;
  }
}

async function toResult(
  request: HttpRequest,
  response: Dispatcher.ResponseData,
  startedAt: number,
  bytesMax: number,
): Promise<ToolResult> {
  const status = response.statusCode;
  const hasBody = request.method !== "HEAD" && status !== 204 && status !== 304;
  const bytes = await readBody(
    response.body,
    hasBody ? listed(response.headers["content-encoding"]) : undefined,
    hasBody ? single(response.headers["content-length"]) : undefined,
    bytesMax,
  );
  const headers = plainHeaders(response.headers);
  if (!Buffer.isBuffer(bytes)) {
    const more = { status, status_code: status };
    const result = failed(
      "client_error",
      bytes.code,
      `${describeRequest(request)}: the answer ${bytes.message}.`,
      more,
    );
    return { ...result, http: { status, headers } };
  }
  const { data, encoding } = decodeBody(bytes, single(response.headers["content-type"]) ?? "");
  const result: JsonObject = {
    status_code: status,
    headers,
    url: shownUrl(request),
    elapsed: Math.round(performance.now() - startedAt) / 1000,
    data,
    ...defined({ encoding }),
  };
  const http = { status, headers };
  if (status < 400) return { status: "ok", data: result, http };
  return { status: "error", data: result, http, error: statusError(describeRequest(request), status, data) };
}

/** Repeated headers are joined as the standard allows, except `set-cookie`, which stays a list. */
function plainHeaders(headers: Dispatcher.ResponseData["headers"]): JsonObject {
  const plain: JsonObject = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue;
    const key = name.toLowerCase();
    setOwn(plain, key, Array.isArray(value) && key !== "set-cookie" ? value.join(", ") : value);
  }
  return plain;
}

function shownUrl(request: HttpRequest): string {
  if (request.secretQuery.size === 0) return request.url.href;
  const url = new URL(request.url);
  for (const name of request.secretQuery) url.searchParams.delete(name);
  return url.href;
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

function listed(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(",") : value;
}
