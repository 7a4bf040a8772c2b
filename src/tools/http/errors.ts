import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import { isJsonObject, own } from "../../schema/words/json.ts";
import { failed, type TaskError, type TaskErrorKind, type ToolResult } from "../../schema/words/outcome.ts";

/** The error of an answer with a status of 400 or more (language document, section 5.4). */
export function statusError(what: string, status: number, data: Json): TaskError {
  const reason = reasonIn(data);
  return {
    kind: kindOfStatus(status),
    code: `HTTP_${status}`,
    message: `${what} answered ${status}${reason === "" ? "." : `: ${reason}`}`,
    retryable: status === 429 || status >= 500,
    status,
    status_code: status,
  };
}

/** Kind of the error that an HTTP status of 400 or more stands for. */
export function kindOfStatus(status: number): TaskErrorKind {
  if (status === 429) return "rate_limit";
  if (status === 401 || status === 403) return "auth";
  if (status === 404) return "not_found";
  return status >= 500 ? "server_error" : "client_error";
}

/** The result of a request that got no answer: refused, unresolved, untrusted, cut off. */
export function requestFailure(what: string, thrown: unknown): ToolResult {
  const error = rootCause(thrown);
  if (error instanceof FlowError) throw error;
  const code = codeOf(error);
  const reason = reasonOf(error);
  if (code.startsWith("UND_ERR_INVALID_ARG") || code === "ERR_INVALID_CHAR") {
    return failed("configuration", "INVALID_CONFIG", `${what} cannot be sent: ${reason}.`);
  }
  if (CERTIFICATE_CODES.test(code)) {
    return failed(
      "connection",
      code,
      `${what}: the server's certificate is not trusted (${reason}). Set NODE_EXTRA_CA_CERTS to the file of its ` +
        "authority, put its text into `ca` of the credential, or for a server that you know, verify_ssl: false on this task.",
    );
  }
  if (code === "EPROTO" || code.startsWith("ERR_SSL") || code.startsWith("ERR_TLS")) {
    return failed(
      "connection",
      code,
      `${what}: no TLS connection (${reason}). Does the server speak https on this port?`,
    );
  }
  if (error instanceof Error && error.name === "HTTPParserError") {
    return failed("parse", "INVALID_HTTP", `${what}: the answer is not valid HTTP (${reason}).`);
  }
  return failed("connection", code, `${what} got no answer: ${reason}${CONNECTION_HINTS[code] ?? "."}`);
}

/** Follows `cause`: fetch wraps what happened into "fetch failed", and several addresses into an AggregateError. */
export function rootCause(thrown: unknown): unknown {
  let error = thrown;
  for (let depth = 0; depth < 8; depth += 1) {
    if (error instanceof AggregateError && error.errors.length > 0) error = error.errors[0];
    else if (error instanceof Error && error.cause !== undefined && !(error instanceof FlowError)) error = error.cause;
    else return error;
  }
  return error;
}

const CERTIFICATE_CODES = /CERT|SELF_SIGNED|UNABLE_TO_(VERIFY|GET)/;

const CONNECTION_HINTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: ". Nothing listens there: check the port, and that the service runs.",
  ENOTFOUND: ". Name or service not known: check the spelling of the host.",
  EAI_AGAIN: ". Temporary failure in name resolution: the name server did not answer.",
  ECONNRESET: ". The server closed the connection.",
  UND_ERR_SOCKET: ". The server closed the connection.",
  UND_ERR_CONNECT_TIMEOUT: ". The server did not accept the connection in time.",
};

function codeOf(error: unknown): string {
  const code = error instanceof Error ? own(error, "code") : undefined;
  return typeof code === "string" ? code : "CONNECTION_FAILED";
}

function reasonOf(error: unknown): string {
  // OpenSSL's message has its source file and line; its short reason stands beside it.
  const short = error instanceof Error ? own(error, "reason") : undefined;
  return (typeof short === "string" ? short : messageOf(error)).trim().replace(/\.$/, "") || codeOf(error);
}

/** What an error body says in one line, at most 300 characters: its usual field, else its text. */
function reasonIn(data: Json): string {
  let reason: unknown = data;
  for (let depth = 0; depth < 2 && isJsonObject(reason); depth += 1) {
    const object: object = reason;
    reason = ["message", "error_description", "detail", "error", "title"]
      .map((key) => own(object, key))
      .find((value) => typeof value === "string" || isJsonObject(value));
  }
  if (typeof reason !== "string") return "";
  const line = reason.replace(/\s+/g, " ").trim();
  return line.length > 300 ? `${line.slice(0, 300)}…` : line;
}
