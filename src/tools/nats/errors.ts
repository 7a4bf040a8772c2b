import { ErrorCode, NatsError } from "nats";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { own } from "../../schema/words/json.ts";
import { failed, type TaskErrorKind, type ToolResult } from "../../schema/words/outcome.ts";

/** JetStream's code for a stream that is not there: the bucket was never made, or was deleted. */
const STREAM_NOT_FOUND = 10_059;
/** JetStream's code for a stream that is there with another configuration. */
const STREAM_NAME_IN_USE = 10_058;
/** JetStream's codes when the account's or the server's storage is full, or the bucket has reached its size. */
const STORAGE_FULL: ReadonlySet<number> = new Set([10_023, 10_028, 10_047, 10_077]);

/** True if the bucket does not exist: its subjects have no responder, or its stream is unknown. */
export function isBucketMissing(error: unknown): boolean {
  if (!(error instanceof NatsError)) return false;
  return error.api_error?.err_code === STREAM_NOT_FOUND || error.message === "stream not found";
}

/** True when a bucket of this name was made meanwhile, with other settings. */
export function isBucketTaken(error: unknown): boolean {
  return error instanceof NatsError && error.api_error?.err_code === STREAM_NAME_IN_USE;
}

/** True if the message had no responder: no such bucket, or no JetStream at all. */
export function isUnanswered(error: unknown): boolean {
  return error instanceof NatsError && error.code === ErrorCode.NoResponders && error.api_error === undefined;
}

/**
 * The result of an operation that failed, by kind (language document, section 5.4). `what` names it: "kv_get of key …";
 * `target` the servers, never the address itself.
 */
export function natsFailure(what: string, target: string, error: unknown): ToolResult {
  // Refused by the guard, or misconfigured: the caller reports it.
  if (error instanceof FlowError) throw error;
  const code = codeOf(error);
  const [kind, name, hint, retryable] = verdictOf(error, code);
  const message = `${what} at ${target} failed: ${messageOf(error) || name}.${hint}`;
  return failed(kind, name, message, { retryable });
}

type Verdict = [kind: TaskErrorKind, code: string, hint: string, retryable: boolean];

function verdictOf(error: unknown, code: string): Verdict {
  const apiCode = error instanceof NatsError ? error.api_error?.err_code : undefined;
  if (apiCode !== undefined && STORAGE_FULL.has(apiCode)) {
    return ["storage_quota", `JETSTREAM_${apiCode}`, " Make room there, or raise the limit.", false];
  }
  if (apiCode !== undefined) {
    const status = error instanceof NatsError ? (error.api_error?.code ?? 0) : 0;
    return [status >= 500 ? "server_error" : "client_error", `JETSTREAM_${apiCode}`, "", status >= 500];
  }
  if (AUTH_CODES.has(code)) return ["auth", code, " Check user, password, token or creds of the credential.", false];
  const known = VERDICTS[code];
  if (known !== undefined) return known;
  return ["connection", code, "", true];
}

const AUTH_CODES: ReadonlySet<string> = new Set([
  ErrorCode.AuthorizationViolation,
  ErrorCode.AuthenticationExpired,
  ErrorCode.AuthenticationTimeout,
  ErrorCode.AccountExpired,
  ErrorCode.BadAuthentication,
  ErrorCode.BadCreds,
  ErrorCode.PermissionsViolation,
]);

const VERDICTS: Readonly<Record<string, Verdict>> = {
  [ErrorCode.Timeout]: ["timeout", "TIMEOUT", " The server did not answer in time.", true],
  [ErrorCode.ConnectionTimeout]: [
    "connection",
    "CONNECTION_TIMEOUT",
    " Check host and port, and that NATS answers there.",
    true,
  ],
  [ErrorCode.ConnectionRefused]: [
    "connection",
    "CONNECTION_REFUSED",
    " Nothing listens there: check host and port, and that the server runs.",
    true,
  ],
  [ErrorCode.NoResponders]: [
    "configuration",
    "JETSTREAM_NOT_ENABLED",
    " Nobody answers there for key-value buckets: start the server with JetStream (-js), and allow it to the account.",
    false,
  ],
  [ErrorCode.MaxPayloadExceeded]: [
    "client_error",
    "VALUE_TOO_LARGE",
    " The server takes no message of this size: raise its max_payload, or store the value elsewhere.",
    false,
  ],
  [ErrorCode.ServerOptionNotAvailable]: [
    "configuration",
    "SERVER_OPT_NA",
    " The server offers no encryption: write nats:// instead of tls://.",
    false,
  ],
  ENOTFOUND: ["connection", "ENOTFOUND", " Name or service not known: check the spelling of the host.", true],
  EAI_AGAIN: [
    "connection",
    "EAI_AGAIN",
    " Temporary failure in name resolution: the name server did not answer.",
    true,
  ],
  ERR_TLS_CERT_ALTNAME_INVALID: [
    "connection",
    "ERR_TLS_CERT_ALTNAME_INVALID",
    " Where the server asks for encryption, write its address as tls://host:4222.",
    false,
  ],
};

function codeOf(error: unknown): string {
  const code = error instanceof Error ? own(error, "code") : undefined;
  return typeof code === "string" ? code : "CONNECTION_FAILED";
}
