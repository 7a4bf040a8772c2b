import type { Json } from "./json.ts";

/**
 * Every code of a {@link FlowError}, with the HTTP status that a route answers with. One table: a code that is not here
 * does not compile, and a route never chooses a status itself.
 */
export const ERROR_STATUS = {
  /** The command line was not understood. */
  USAGE: 400,
  /** A document is not a valid playbook or resource. `detail` holds the diagnostics. */
  INVALID_PLAYBOOK: 422,
  /** A file could not be read. */
  FILE_UNREADABLE: 400,
  /** Input that is not of its declared shape. */
  INVALID_INPUT: 422,
  /** A setting (environment, flag) has a value that cannot be used. */
  INVALID_SETTING: 500,
  /** A template does not parse, or a filter was applied to a value of the wrong type. */
  TEMPLATE_ERROR: 422,
  /** A template used more steps, depth or text than its budget allows. */
  TEMPLATE_BUDGET: 422,
  /** The templates that a decision evaluates together are more work than a server may do at once. */
  DECISION_BUDGET: 422,
  /** Catalog path, step, credential or reference that does not exist. */
  NOT_FOUND: 404,
  /** The address is there, and takes other methods: `Allow` and `detail.allow` say which. */
  METHOD_NOT_ALLOWED: 405,
  /** A stored result is missing, or its checksum differs. */
  REFERENCE_NOT_AVAILABLE: 404,
  /** A result could not be stored: no room, or no place to write to. */
  NOT_STORED: 507,
  /** The caller asked for the work to stop. */
  CANCELLED: 409,
  /** The work did not end within its time. */
  TIMEOUT: 504,
  /** A keychain entry or one of its fields could not be resolved. */
  KEYCHAIN: 422,
  /** A missing or unknown token. */
  UNAUTHENTICATED: 401,
  /** The caller is known and may not do this, or the request came from an unexpected origin. */
  FORBIDDEN: 403,
  /** A worker's call without the secret of a claim that is the present one, or of its registration. `detail.reason` says which. */
  claim_required: 403,
  /** The playbook is paused in the catalog: nothing of it is started before it is resumed. */
  playbook_paused: 409,
  /** A system playbook was to be called by a playbook that is not one. */
  SYSTEM_PLAYBOOK: 403,
  /** Too many calls of this kind by one caller. `Retry-After` says when to ask again. */
  RATE_LIMITED: 429,
  /** A login's playbook failed. Its message is shown. */
  INVALID_LOGIN: 500,
  /** A body that is longer than the server reads. */
  TOO_LARGE: 413,
  /** A part of something that is beyond its end. */
  RANGE_NOT_SATISFIABLE: 416,
  /** The address is for connections that change to another protocol: `Upgrade` says which. */
  UPGRADE_REQUIRED: 426,
  /** What the call asks for contradicts what is already so: another body under a used key, a report of a lost claim. */
  CONFLICT: 409,
  /** A link that was used, or whose time is over: it opens nothing any more. */
  GONE: 410,
  /** The command is held by another worker. `Retry-After` says when to ask again. */
  active_claim: 409,
  /** The command has ended. */
  already_terminal: 409,
  /** What is to be run again has not ended yet. */
  not_terminal: 409,
  /** What failed is to be run again, and nothing did. */
  nothing_failed: 422,
  /** A rerun needs a stored result of its original that is gone. */
  RESULT_NOT_REUSABLE: 422,
  /** No worker of that name is registered: register again. */
  unknown: 404,
  /** A batch was not taken in time: send it again under its idempotency key. */
  ack_timeout: 503,
  /** A batch could not be written. */
  enqueue_error: 503,
  /** The queue of batches is full. */
  queue_unavailable: 503,
  /** Nothing processes batches: the server is stopping. */
  worker_unavailable: 503,
  /** What follows from a batch was not worked out in time; it is tried again. */
  processing_timeout: 504,
  /** What follows from a batch could not be worked out. */
  processing_error: 500,
  /** Something that the service needs, the database above all, is not there at the moment: trying again later helps. */
  UNAVAILABLE: 503,
  /** A command could not reach the server, or the answer is not from a flow server. */
  SERVER_UNREACHABLE: 502,
  /** An address that outgoing requests may not reach: private, loopback, link-local and the like. */
  EGRESS_REFUSED: 403,
  /** The database's schema does not match this program, or could not be migrated. */
  SCHEMA_MISMATCH: 500,
  /** Something stored cannot be decrypted with the server's keys, or it has none. Its message is shown. */
  ENCRYPTION: 500,
  /** Data of a credential or keychain entry violate their schema. `detail` has `message` and every one of `errors`. */
  INVALID_SECRET: 400,
  /** A database did not do what it was asked: `detail.sqlstate` says why. */
  SQL_FAILED: 400,
  /** A fault of the program itself. */
  INTERNAL: 500,
} as const satisfies Record<string, number>;

/** Code of a {@link FlowError}. */
export type ErrorCode = keyof typeof ERROR_STATUS;

/**
 * The one error class. `message` says what was attempted, on what, why it failed and what to do next; `code` is for
 * programs. `detail` is JSON that may be shown to the caller: never put a secret or a stack there.
 */
export class FlowError extends Error {
  readonly code: ErrorCode;
  readonly detail: Json | undefined;

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; detail?: Json } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = "FlowError";
    this.code = code;
    this.detail = options.detail;
  }
}

/** The message of anything thrown, without its stack. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
