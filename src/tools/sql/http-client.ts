import { type Dispatcher, request as send } from "undici";
import type { EgressGuard } from "../../platform/http/egress.ts";
import { failed, type ToolResult } from "../../schema/words/outcome.ts";
import { readBody } from "../http/body.ts";
import { createGuardedAgents } from "../http/dispatcher.ts";
import { requestFailure } from "../http/errors.ts";

/** A request to a database that is spoken to over HTTP. */
export interface SqlHttpRequest {
  method: "GET" | "POST";
  url: URL;
  headers: Record<string, string>;
  body?: string;
  verifySsl?: boolean;
  /** Authorities (PEM) that alone sign the server's certificate. */
  ca?: string | undefined;
}

/** What it answered. */
export interface SqlHttpAnswer {
  status: number;
  /** Names in lower case. */
  headers: Dispatcher.ResponseData["headers"];
  text: string;
  /** Length of the body, unpacked. */
  bytes: number;
}

/** Connections to databases over HTTP: bounded for each address, closed when idle. */
export interface SqlHttp {
  /**
   * Sends the request; answers with whatever status came. A failed result when no answer came or it was larger than
   * `bytesMax`; throws FlowError `EGRESS_REFUSED`, and the signal's reason.
   */
  send(request: SqlHttpRequest, signal: AbortSignal, bytesMax?: number): Promise<SqlHttpAnswer | ToolResult>;
  close(): Promise<void>;
}

/** Most bytes of an answer. */
const BYTES_MAX = 64 * 1024 * 1024;

/** Builds the client. `connectionsMax` is for each address, default 4; `connectTimeoutMs` defaults to 10,000. */
export function createSqlHttp(
  egress: EgressGuard,
  options: { connectionsMax?: number; connectTimeoutMs?: number } = {},
): SqlHttp {
  const { connectionsMax = 4, connectTimeoutMs = 10_000 } = options;
  const agents = createGuardedAgents(egress, { connectTimeoutMs, connectionsMax });
  return {
    async send(request, signal, bytesMax = BYTES_MAX) {
      const { method, url, body = null } = request;
      const headers = { "accept-encoding": "gzip, deflate, br", "user-agent": "flow", ...request.headers };
      try {
        const dispatcher = agents.of({ verifySsl: request.verifySsl ?? true, ca: request.ca });
        return await read(await send(url, { method, headers, body, dispatcher, signal }), bytesMax);
      } catch (error) {
        signal.throwIfAborted();
        return asDatabase(requestFailure(`${method} ${url.origin}${url.pathname}`, error));
      }
    },
    close: () => agents.close(),
  };
}

/** True for an answer, false for a failed result. */
export function isAnswer(outcome: SqlHttpAnswer | ToolResult): outcome is SqlHttpAnswer {
  return "text" in outcome;
}

async function read(response: Dispatcher.ResponseData, bytesMax: number): Promise<SqlHttpAnswer | ToolResult> {
  const { headers, statusCode: status } = response;
  const bytes = await readBody(
    response.body,
    headerText(headers, "content-encoding"),
    headerText(headers, "content-length"),
    bytesMax,
  );
  if (!Buffer.isBuffer(bytes)) {
    const message = `The database's answer ${bytes.message}. Read less at a time: add "limit", or select fewer columns.`;
    return failed("client_error", bytes.code === "RESPONSE_TOO_LARGE" ? "RESULT_TOO_LARGE" : bytes.code, message);
  }
  return { status, headers, text: bytes.toString("utf8"), bytes: bytes.length };
}

/** A header's value as one text. */
export function headerText(headers: Dispatcher.ResponseData["headers"], name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(",") : value;
}

/** That no answer came is `db_connection` for a database, as with every other. */
function asDatabase(result: ToolResult): ToolResult {
  const { error } = result;
  if (error?.kind !== "connection") return result;
  return { ...result, error: { ...error, kind: "db_connection" } };
}
