import type { NatsConnection } from "nats";
import * as v from "valibot";
import type { EgressGuard } from "../../platform/http/egress.ts";
import type { Json, JsonObject } from "../../schema/words/json.ts";
import { failed, type ToolResult } from "../../schema/words/outcome.ts";
import {
  AnyJson,
  abortedResult,
  answering,
  configurationError,
  parseConfig,
  TextLike,
} from "../contract/task-config.ts";
import type { Tool, ToolCall } from "../contract/tool.ts";
import { decodeBody } from "../http/body.ts";
import { deleteValue, getValue, KEYS_MAX, listKeys, putValue } from "./bucket.ts";
import { natsFailure } from "./errors.ts";
import { createNatsPool, type NatsPool } from "./pool.ts";
import { describeTarget, type NatsTarget, readNatsTarget } from "./target.ts";

/** What {@link createNatsTool} takes. */
export interface NatsOptions {
  /** Which addresses may be reached. */
  egress: EgressGuard;
  /** A connection that no task uses for so many milliseconds is closed. Default 30,000. */
  idleMs?: number;
  /** Longest wait for a connection, in milliseconds. Default 5,000. */
  connectTimeoutMs?: number;
  /** Most connections of this process: one for each credential. Default 64. */
  connectionsMax?: number;
}

/**
 * `nats`: a value of a key-value bucket is read, written or deleted, or its keys are listed (language document, section 8).
 * Result `{status: success|not_found, bucket, key, value, revision}`; of `kv_keys` `{status, bucket, keys, count}`. A bucket
 * is made by the first put. What is not there is a result, not an error.
 */
export function createNatsTool(options: NatsOptions): Tool {
  const pool = createNatsPool({
    egress: options.egress,
    idleMs: options.idleMs ?? 30_000,
    connectTimeoutMs: options.connectTimeoutMs ?? 5_000,
    connectionsMax: options.connectionsMax ?? 64,
  });
  return {
    defaultTimeoutMs: 60_000,
    run: (call) => answering(() => runTask(call, pool)),
    close: () => pool.close(),
  };
}

async function runTask(call: ToolCall, pool: NatsPool): Promise<ToolResult> {
  const target = readNatsTarget(call.config, call.auth);
  const task = readTask(call.config);
  const what = `${task.operation} in bucket '${task.bucket}'`;
  if (call.signal.aborted) return abortedResult(call.signal, what);
  try {
    const running = pool.use(target, (connection) => OPERATIONS[task.operation](connection, task));
    return await unlessAborted(running, call.signal, what);
  } catch (error) {
    return natsFailure(what, describeTarget(target satisfies NatsTarget), error);
  }
}

const NAMES = ["kv_get", "kv_put", "kv_delete", "kv_keys"] as const;
type Operation = (typeof NAMES)[number];

interface NatsTask {
  operation: Operation;
  bucket: string;
  /** Empty for a listing of all keys. */
  key: string;
  value: Uint8Array;
  expiresAt: number | undefined;
  format: "auto" | "text";
}

const OPERATIONS: Readonly<Record<Operation, (connection: NatsConnection, task: NatsTask) => Promise<ToolResult>>> = {
  async kv_get(connection, { bucket, key, format }) {
    const found = await getValue(connection, bucket, key, Date.now());
    if (found === undefined) return notFound({ bucket, key, value: null, revision: null });
    return success({ bucket, key, ...readable(found.bytes, format), revision: found.revision });
  },
  async kv_put(connection, { bucket, key, value, expiresAt }) {
    const revision = await putValue(connection, bucket, key, { bytes: value, expiresAt });
    return success({ bucket, key, revision });
  },
  async kv_delete(connection, { bucket, key }) {
    const revision = await deleteValue(connection, bucket, key, Date.now());
    return revision === undefined ? notFound({ bucket, key, revision: null }) : success({ bucket, key, revision });
  },
  async kv_keys(connection, { bucket, key }) {
    const keys = await listKeys(connection, bucket, key === "" ? ">" : key);
    if (keys === undefined) return notFound({ bucket, keys: [], count: 0 });
    if (keys !== "too many") return success({ bucket, keys, count: keys.length });
    const message = `Bucket '${bucket}' has more than ${KEYS_MAX} keys: choose among them with "key", such as "user.*" or "user.>".`;
    return failed("client_error", "RESULT_TOO_LARGE", message);
  },
};

function success(data: JsonObject): ToolResult {
  return { status: "ok", data: { status: "success", ...data } };
}

function notFound(data: JsonObject): ToolResult {
  return { status: "ok", data: { status: "not_found", ...data } };
}

/** JSON where it is JSON, else text, else base64, as the http task reads a body. */
function readable(bytes: Uint8Array, format: NatsTask["format"]): JsonObject {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const { data, encoding } = decodeBody(buffer, "");
  if (encoding !== undefined) return { value: data, encoding };
  return { value: format === "text" ? buffer.toString("utf8") : data };
}

const Config = v.object({
  // With the default settings and a wrong revision, so that a missing key is reported.
  operation: v.optional(
    v.pipe(
      v.string("expects kv_get, kv_put, kv_delete or kv_keys"),
      v.transform((text) =>
        text
          .trim()
          .toLowerCase()
          .replace(/^(?!kv_)/, "kv_"),
      ),
      v.picklist(NAMES, "expects kv_get, kv_put, kv_delete or kv_keys"),
    ),
    "",
  ),
  bucket: v.optional(
    v.pipe(v.string("expects text"), v.regex(/^[A-Za-z0-9_-]{1,255}$/, "expects letters, digits, '-' and '_'")),
    "",
  ),
  key: v.optional(TextLike),
  value: v.optional(AnyJson),
  ttl: v.optional(
    v.pipe(
      v.union([v.number(), v.pipe(v.string(), v.regex(/^\d+(\.\d+)?$/), v.transform(Number))], "expects seconds"),
      v.number(),
      v.gtValue(0, "expects seconds above 0"),
      v.maxValue(315_360_000, "expects ten years at most"),
    ),
  ),
  format: v.optional(v.picklist(["auto", "text"], "expects auto or text"), "auto"),
});

/** Longest key, in bytes: NATS bounds a subject, which a key becomes a part of. */
const KEY_BYTES_MAX = 1_024;

function readTask(config: JsonObject): NatsTask {
  const {
    operation,
    bucket,
    key = "",
    value,
    ttl,
    format,
  } = parseConfig("nats", Config, {
    ...config,
    operation: config["operation"] ?? config["action"] ?? null,
    ttl: config["ttl"] ?? config["ttl_seconds"] ?? null,
  });
  if (operation === "kv_keys") checkPattern(key);
  else checkKey(key, operation);
  if (ttl !== undefined && operation !== "kv_put")
    throw configurationError(`The nats task's "ttl" is for kv_put, not for ${operation}.`);
  if (operation === "kv_put" && value === undefined) {
    throw configurationError(
      'The nats task has no "value" to put; a template of a name that is not there renders to none. ' +
        "Use kv_delete to remove a key.",
    );
  }
  return {
    operation,
    bucket,
    key,
    value: encodeValue(value ?? ""),
    expiresAt: ttl === undefined ? undefined : Date.now() + ttl * 1_000,
    format,
  };
}

function checkKey(key: string, operation: Operation): void {
  if (key === "") throw configurationError(`The nats task has no "key", which ${operation} needs.`);
  if (Buffer.byteLength(key) > KEY_BYTES_MAX || /\u0000|\p{Surrogate}/u.test(key)) {
    throw configurationError(
      `The nats task's "key" must be Unicode text without NUL, of ${KEY_BYTES_MAX} bytes at most.`,
    );
  }
}

function checkPattern(pattern: string): void {
  if (/^[\w/=.*>-]*$/.test(pattern)) return;
  throw configurationError(
    'The nats task\'s "key" chooses among the keys of kv_keys: write it as "user.*" or "user.>", of letters, digits and - / _ = .',
  );
}

/** Text as it is, so that other programs read what was written; anything else as JSON. */
function encodeValue(value: Json): Uint8Array {
  return Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
}

/** A request to the server cannot be cancelled; its answer is ignored. */
async function unlessAborted(work: Promise<ToolResult>, signal: AbortSignal, what: string): Promise<ToolResult> {
  let onAbort = () => {};
  const aborted = new Promise<ToolResult>((resolve) => {
    onAbort = () => resolve(abortedResult(signal, what));
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
    work.catch(() => undefined);
  }
}
