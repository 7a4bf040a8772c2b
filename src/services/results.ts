import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gunzip, gzip, gzipSync } from "node:zlib";
import type { WritableResultStore } from "../ports/result-store.ts";
import { type Database, transaction } from "../repositories/database.ts";
import {
  type ClaimKey,
  deleteExpiredResults,
  type FoundResult,
  findResult,
  isClaimed,
  type ResultRow,
  saveClaimedResult,
  saveResult,
} from "../repositories/results.ts";
import { FlowError } from "../schema/errors.ts";
import type { Json } from "../schema/json.ts";
import { executionOfRef, type ResultScope } from "../schema/result-api.ts";
import type { ResultFiles } from "./result-files.ts";

/** A payload that a worker wants to be kept. */
export interface ResultUpload {
  ref: string;
  claim: ClaimKey;
  /** JSON text in UTF-8. */
  body: AsyncIterable<Uint8Array>;
  /** Default `permanent`: until its time is over, or its execution is deleted. */
  scope?: ResultScope;
  ttlMs?: number;
}

/** A payload that is kept. */
export interface SavedResult {
  store: "kv" | "disk";
  bytes: number;
  sha256: string;
  expiresAt: Date;
}

/**
 * Payloads that are too large for events (interface specification, Results). As a {@link WritableResultStore} it is the
 * engine's own: what it saves needs no claim.
 */
export interface Results extends WritableResultStore {
  /**
   * Keeps what a worker sends, or replaces it. Throws `FlowError` CONFLICT when the claim is not the present one of a command
   * of the reference's execution, INVALID_INPUT for a text that cannot be JSON, TOO_LARGE, NOT_STORED.
   */
  upload(upload: ResultUpload): Promise<SavedResult>;
  /** The payload as it was stored, its checksum verified. Throws `FlowError` REFERENCE_NOT_AVAILABLE. */
  read(ref: string): Promise<{ payload: Buffer; contentType: string }>;
  /** Removes files that {@link deleteExecution} has left to be removed. */
  removeFiles(names: readonly string[]): Promise<void>;
  /**
   * Deletes payloads that are past their time, at most `limit`, and gives how many; and what processes that died have left
   * half written. To be called now and then.
   */
  removeExpired(limit: number): Promise<number>;
}

/** What the results are made of. */
export interface ResultsDeps {
  database: Database;
  files: ResultFiles;
  /** Longest payload, bytes. */
  bytesMax: number;
  /** How long payloads are kept when nobody says. */
  ttlMs: number;
}

/** Payloads up to this are in the database, longer ones in files (`kv_max_bytes`: decisions, "Results"). */
const DATABASE_BYTES_MAX = 1_048_576;
const COMPRESSED_BYTES_MIN = 4_096;
const CONTENT_TYPE = "application/json";

/** The results of a database and a folder. */
export function createResults(deps: ResultsDeps): Results {
  const { database, files, ttlMs } = deps;
  const read = async (ref: string) => {
    const executionId = executionOfRef(ref);
    if (executionId === undefined) throw notAvailable(ref, "it is none that this service gives out");
    const found = await findResult(database, executionId, ref);
    if (found === undefined) throw notAvailable(ref, "it was never stored or has been deleted");
    if (found.isExpired) throw notAvailable(ref, "its time is over");
    const payload = await payloadOf(found, files);
    if (payload === undefined) throw notAvailable(ref, "its payload cannot be read where it was stored");
    if (sha256Of(payload) !== found.sha256)
      throw notAvailable(ref, "what is stored is not what was written (sha256 differs)");
    return { payload, contentType: found.contentType };
  };
  return {
    kind: "kv",
    upload: (upload) => keepUpload(deps, upload),
    read,
    async load(ref) {
      const { payload } = await read(ref);
      try {
        return JSON.parse(payload.toString("utf8")) as Json;
      } catch (cause) {
        throw notAvailable(ref, "it is not JSON", cause);
      }
    },
    async save(ref, json) {
      const executionId = executionOfRef(ref);
      if (executionId === undefined) throw new FlowError("INTERNAL", `${ref} names no execution`);
      const payload = Buffer.from(json);
      const row = await rowFor({ executionId, ref, payload, scope: "permanent", ttlMs });
      await saveResult(database, row);
      return { sha256: row.sha256, bytes: row.bytes };
    },
    removeFiles: (names) => files.remove(names),
    async removeExpired(limit) {
      const { count, files: names } = await deleteExpiredResults(database, limit);
      await files.remove(names);
      await files.removeRemains();
      return count;
    },
  };
}

async function keepUpload(deps: ResultsDeps, upload: ResultUpload): Promise<SavedResult> {
  const { ref, scope = "permanent", ttlMs = deps.ttlMs } = upload;
  const executionId = executionOfRef(ref);
  if (executionId === undefined) throw new FlowError("INVALID_INPUT", `'ref' is no reference of an execution: ${ref}`);
  const body = limited(upload.body, deps.bytesMax);
  const parts: Uint8Array[] = [];
  let bytes = 0;
  // What is short enough stays in memory; the rest of a longer one goes to its file as it comes.
  for (;;) {
    const { value, done } = await body.next();
    if (done === true) break;
    parts.push(value);
    bytes += value.byteLength;
    if (bytes > DATABASE_BYTES_MAX) return await keepFile(deps, upload, { executionId, scope, ttlMs, parts, body });
  }
  const payload = Buffer.concat(parts);
  checkOutline(payload);
  const row = await rowFor({ executionId, ref, payload, scope, ttlMs });
  const saved = await saveClaimedResult(deps.database, row, upload.claim);
  if (saved === undefined) throw notClaimed(upload);
  if (saved.replacedFile !== null) await deps.files.remove([saved.replacedFile]);
  return { store: "kv", bytes: row.bytes, sha256: row.sha256, expiresAt: saved.expiresAt };
}

interface LongUpload {
  executionId: string;
  scope: ResultScope;
  ttlMs: number;
  /** What was read so far. */
  parts: Uint8Array[];
  body: AsyncGenerator<Uint8Array>;
}

async function keepFile(deps: ResultsDeps, upload: ResultUpload, long: LongUpload): Promise<SavedResult> {
  const { executionId, scope, ttlMs, parts, body } = long;
  const { database, files } = deps;
  const file = await files.write(
    (async function* () {
      yield* parts;
      yield* body;
    })(),
  );
  const name = files.nameOf(upload.ref);
  const { bytes, sha256 } = file;
  const row: ResultRow = {
    ...{ executionId, ref: upload.ref, scope, ttlMs, bytes, sha256 },
    ...{ store: "disk", contentType: CONTENT_TYPE, compression: null, payload: null, file: name },
  };
  try {
    const saved = await transaction(database, async (tx) => {
      // The claim's row is locked before the file takes its name: a claim that was lost replaces nothing.
      if (!(await isClaimed(tx, executionId, upload.claim))) throw notClaimed(upload);
      await file.place(name);
      return await saveClaimedResult(tx, row, upload.claim);
    });
    if (saved === undefined) throw notClaimed(upload);
    return { store: "disk", bytes, sha256, expiresAt: saved.expiresAt };
  } finally {
    await file.discard();
  }
}

async function* limited(body: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const part of body) {
    bytes += part.byteLength;
    if (bytes > bytesMax) {
      throw new FlowError("TOO_LARGE", `A result is ${bytesMax.toLocaleString("en")} bytes long at most`);
    }
    yield part;
  }
}

async function rowFor(
  result: Pick<ResultRow, "executionId" | "ref" | "scope" | "ttlMs"> & { payload: Buffer },
): Promise<ResultRow> {
  const { payload, ...rest } = result;
  const shrinks = payload.length >= COMPRESSED_BYTES_MIN && shrinksWell(payload);
  return {
    ...rest,
    ...{ store: "kv", contentType: CONTENT_TYPE, file: null, bytes: payload.length, sha256: sha256Of(payload) },
    compression: shrinks ? "gzip" : null,
    payload: shrinks ? await promisify(gzip)(payload, { level: 1 }) : payload,
  };
}

const SAMPLE_BYTES = 4_096;

/** Whether gzip halves the first 4 KiB: half a tenth of a millisecond that saves two for text that does not shrink. */
function shrinksWell(payload: Buffer): boolean {
  const sample = payload.subarray(0, SAMPLE_BYTES);
  return gzipSync(sample, { level: 1 }).length * 2 < sample.length;
}

async function payloadOf(found: FoundResult, files: ResultFiles): Promise<Buffer | undefined> {
  if (found.file !== null) return await files.read(found.file);
  if (found.payload === null) return undefined;
  try {
    const limit = { maxOutputLength: Math.max(found.bytes, 1) };
    return found.compression === null ? Buffer.from(found.payload) : await promisify(gunzip)(found.payload, limit);
  } catch {
    return undefined;
  }
}

/** The first and the last character of a JSON text, without spaces: a word and a number may end in what others begin with. */
const ENDS_OF_JSON = /^(\{\}|\[\]|""|[\dtfn-][\del])$/;
const END_BYTES = 64;

/**
 * A look at a text's two ends and its encoding, not a parse: parsing would be a third of what storing costs (1.3 ms of 4 for
 * 160 KB). Who stores a text that is no JSON reads that its reference is not available.
 */
function checkOutline(payload: Buffer): void {
  const first = payload.subarray(0, END_BYTES).toString("latin1").trimStart().slice(0, 1);
  const last = payload.subarray(-END_BYTES).toString("latin1").trimEnd().slice(-1);
  if (isUtf8(payload) && ENDS_OF_JSON.test(first + last)) return;
  throw new FlowError("INVALID_INPUT", "The body is not a JSON text in UTF-8");
}

function sha256Of(payload: Uint8Array): string {
  return createHash("sha256").update(payload).digest("hex");
}

function notClaimed({ ref, claim }: ResultUpload): FlowError {
  const what = `The result ${ref} was not stored: attempt ${claim.attempt} of command ${claim.commandId}`;
  const why = "is not the present claim of a command of that execution. Drop the work: somebody else has it";
  return new FlowError("CONFLICT", `${what} ${why}`);
}

function notAvailable(ref: string, why: string, cause?: unknown): FlowError {
  return new FlowError("REFERENCE_NOT_AVAILABLE", `The result ${ref} is not available: ${why}`, { cause });
}
