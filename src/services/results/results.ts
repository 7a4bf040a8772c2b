import { setImmediate } from "node:timers/promises";
import type { PayloadStore } from "../../ports/payload-store.ts";
import type { WritableResultStore } from "../../ports/result-store.ts";
import type { Database } from "../../repositories/database/database.ts";
import { findExecution } from "../../repositories/executions/execution-list.ts";
import { takeAll, takeExpired } from "../../repositories/results/delete.ts";
import {
  type ArtifactRow,
  type ClaimKey,
  findResult,
  listArtifacts,
  totalOfOtherArtifacts,
} from "../../repositories/results/results.ts";
import {
  ARTIFACTS_MAX,
  executionOfRef,
  JSON_TYPE,
  type ResultCompression,
  type ResultScope,
} from "../../schema/api/results.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import { isDeeper } from "../../schema/words/json-depth.ts";
import { placeOfArtifact } from "../../schema/words/result.ts";
import { type Attachments, attachments } from "./attachments.ts";
import { createResultRemover } from "./delete-results.ts";
import { type ResultsObserver, SILENT } from "./observer.ts";
import { createResultReader, notAvailable, type OpenedResult } from "./read-result.ts";
import { removeSpooledRemains, takePayload, takeText } from "./receive-payload.ts";
import { createResultEnds, type ResultEnds, stepOfRef } from "./scope-cleanup.ts";
import { checkStore, type PayloadStores, type TierLimits } from "./storage-tiers.ts";
import { type KeptResult, keepResult } from "./store-result.ts";

/** A payload that a worker wants to be kept. */
export interface ResultUpload {
  ref: string;
  claim: ClaimKey;
  /** JSON text in UTF-8, unless `contentType` says otherwise. */
  body: AsyncIterable<Uint8Array>;
  /** Default `permanent`: until its time is over, or its execution is deleted. */
  scope?: ResultScope;
  ttlMs?: number;
  /** Default `auto`: by size. */
  store?: string;
  /** Default: what is short and shrinks well is compressed. */
  compression?: ResultCompression;
  /** Default `application/json`. */
  contentType?: string;
}

/**
 * Payloads that are too large for events (interface specification, Results). As a {@link WritableResultStore} it belongs to the
 * engine: what the engine saves needs no claim.
 */
export interface Results
  extends WritableResultStore,
    Attachments,
    Pick<ResultEnds, "tell" | "sweep" | "idle" | "close"> {
  /**
   * Stores or replaces a worker's payload. Throws `FlowError` CONFLICT if the claim is not the current one of a command of the
   * reference's execution, and keeps the stored payload then; INVALID_INPUT for a text that cannot be JSON and for an unknown
   * store, TOO_LARGE, NOT_STORED, UNAVAILABLE while the store is unavailable.
   */
  upload(upload: ResultUpload): Promise<KeptResult>;
  /** What a reference leads to, for outside readers. Throws `FlowError` REFERENCE_NOT_AVAILABLE. */
  read(ref: string): Promise<OpenedResult>;
  /** The files that tasks of an execution have stored, oldest first, at most `limit`. Throws `FlowError` NOT_FOUND. */
  artifacts(executionId: string, limit: number): Promise<ArtifactRow[]>;
  /** Takes away the results of executions, at most `limit`, and gives how many. Their payloads follow, at the latest soon. */
  removeOf(executionIds: readonly string[], limit: number): Promise<number>;
  /** Deletes payloads that are past their time, at most `limit`, and gives how many. */
  removeExpired(limit: number): Promise<number>;
  /**
   * Removes what processes that died, or stores that were away, have left half written or half removed; at most `limit`.
   * Gives how many. To be called now and then.
   */
  removeLeftovers(limit: number): Promise<number>;
}

/** What the results are made of. */
export interface ResultsDeps {
  database: Database;
  /** Stores besides the rows of results; `disk` must be among them. */
  stores: readonly PayloadStore[];
  /** Folder for long payloads on their way, on the disk of the store `disk`, so that it need not copy them. */
  folder: string;
  /** Longest payload, bytes. */
  bytesMax: number;
  /** Most bytes of the files of one execution. */
  filesBytesMax: number;
  limits: TierLimits;
  /** Default time to live of payloads. */
  ttlMs: number;
  now(): number;
  /** Whether a step of an open execution has ended; default: never. */
  isStepOver?(executionId: string, step: string): Promise<boolean>;
  observer?: ResultsObserver;
}

/** The results of a database and its stores. */
export function createResults(deps: ResultsDeps): Results {
  const { database, observer = SILENT, isStepOver = async () => false } = deps;
  const stores = new Map(deps.stores.map((store) => [store.kind, store]));
  const remover = createResultRemover({ database, stores, observer });
  const ends = createResultEnds({ database, remover, observer, isStepOver });
  const reader = createResultReader({ ...deps, stores, observer });

  const keep = async (keeping: Parameters<typeof keepResult>[1]) => {
    const kept = await keepResult({ database, stores, remover, limits: deps.limits }, keeping);
    observer.stored(kept.store, kept.bytes);
    ends.note({ ...keeping, ...kept });
    return kept;
  };

  return {
    kind: "kv",
    async upload({ ref, claim, body, ...how }) {
      const { scope = "permanent", ttlMs = deps.ttlMs, store = "auto", contentType = JSON_TYPE } = how;
      const executionId = executionOfRef(ref);
      if (executionId === undefined) throw invalidInput(`'ref' is no reference of an execution: ${ref}`);
      const named = storeFor(store, stores, contentType);
      const spare = await spareForFile(database, executionId, ref, deps.filesBytesMax);
      const payload = await takePayload(body, {
        folder: deps.folder,
        memoryBytesMax: deps.limits.kvBytesMax,
        bytesMax: deps.bytesMax,
        compression: named?.isPlain === true ? "none" : how.compression,
        isJson: isJson(contentType),
      });
      try {
        checkFileFits(ref, payload.bytes, spare, deps.filesBytesMax);
        return await keep({ executionId, ref, claim, payload, store, scope, ttlMs, contentType });
      } finally {
        await payload.discard();
      }
    },
    ...attachments({ ...deps, stores, observer, jsonOf }),
    async read(ref) {
      const { found, executionId } = await findStored(database, ref);
      // The engine reads this in the middle of a step's end; only callers outside of it can get an error.
      const step = found.scope === "step" ? stepOfRef(ref) : undefined;
      if (step !== undefined && (await isStepOver(executionId, step)))
        throw notAvailable(ref, "its step has ended, and it ended with that");
      return reader.opened(ref, found);
    },
    artifacts: (executionId, limit) => artifactsOf(database, executionId, limit),
    async load(ref) {
      const { found } = await findStored(database, ref);
      return await jsonOf(ref, (await reader.all(ref, found)).toString("utf8"));
    },
    async save(ref, json) {
      const executionId = executionOfRef(ref);
      if (executionId === undefined) throw new FlowError("INTERNAL", `${ref} names no execution`);
      const keeping = { store: "auto", scope: "permanent", ttlMs: deps.ttlMs, contentType: JSON_TYPE } as const;
      const kept = await keep({ executionId, ref, claim: undefined, payload: await takeText(json), ...keeping });
      return { sha256: kept.sha256, bytes: kept.bytes, store: kept.store };
    },
    removeOf: async (executionIds, limit) =>
      remover.removeTaken(await takeAll(database, executionIds, limit), "execution"),
    removeExpired: async (limit) => remover.removeTaken(await takeExpired(database, limit), "expired"),
    removeLeftovers: async (limit) =>
      (await removeSpooledRemains(deps.folder, deps.now())) + (await remover.leftovers(limit)),
    tell: ends.tell,
    sweep: ends.sweep,
    idle: ends.idle,
    close: ends.close,
  };
}

/**
 * How many bytes this file of the execution may have; of what is no file any. Throws `FlowError` INVALID_INPUT for a file too many. What several
 * workers store at the same moment may be some more.
 */
async function spareForFile(database: Database, executionId: string, ref: string, bytesMax: number): Promise<number> {
  if (placeOfArtifact(ref) === undefined) return Number.POSITIVE_INFINITY;
  const { count, bytes } = await totalOfOtherArtifacts(database, executionId, ref, ARTIFACTS_MAX);
  if (count < ARTIFACTS_MAX) return bytesMax - bytes;
  const most = ARTIFACTS_MAX.toLocaleString("en");
  const hint = "Pack several into one, or write them to a store of your own";
  throw new FlowError("INVALID_INPUT", `The execution has stored ${most} files, and more are not taken. ${hint}`);
}

/** Throws `FlowError` NOT_STORED for a file that is longer than what {@link spareForFile} gave. */
function checkFileFits(ref: string, bytes: number, spare: number, bytesMax: number): void {
  if (bytes <= spare) return;
  const [has, left, most] = [bytes, Math.max(0, spare), bytesMax].map((number) => number.toLocaleString("en"));
  const what = `The file "${placeOfArtifact(ref)?.name}" was not stored: it has ${has} bytes`;
  const why = `and the files of its execution may have ${left} more, of ${most} together`;
  const hint =
    "Store smaller files, write them to a store of your own, or raise FLOW_EXECUTION_FILES_BYTES_MAX on the servers";
  throw new FlowError("NOT_STORED", `${what}, ${why}. ${hint}`, { detail: { kind: "storage_quota" } });
}

/** The store that is named, undefined for `auto`. Throws `FlowError` INVALID_INPUT for an unknown one, and for one that takes no such payload. */
function storeFor(store: string, stores: PayloadStores, contentType: string): PayloadStore | undefined {
  checkStore(store, stores);
  const named = store === "auto" ? undefined : stores.get(store as PayloadStore["kind"]);
  if (named?.isPlain !== true || isJson(contentType)) return named;
  throw invalidInput(`The store '${store}' takes nothing but JSON, not ${contentType}`);
}

function invalidInput(message: string): FlowError {
  return new FlowError("INVALID_INPUT", message);
}

async function artifactsOf(database: Database, executionId: string, limit: number): Promise<ArtifactRow[]> {
  const rows = await listArtifacts(database, executionId, limit);
  if (rows.length === 0 && (await findExecution(database, executionId)) === undefined)
    throw new FlowError("NOT_FOUND", `Execution ${executionId} does not exist`);
  return rows;
}

/** The stored result of a reference that may be read. Throws `FlowError` REFERENCE_NOT_AVAILABLE. */
async function findStored(database: Database, ref: string) {
  const executionId = executionOfRef(ref);
  if (executionId === undefined) throw notAvailable(ref, "this service did not issue it");
  const found = await findResult(database, executionId, ref);
  if (found === undefined) throw notAvailable(ref, "it was never stored or has been deleted");
  if (found.isExpired) throw notAvailable(ref, "its time is over");
  if (found.hasEnded) throw notAvailable(ref, `its ${found.scope} has ended, and it ended with that`);
  return { found, executionId };
}

/** What templates read at the most. Workers store less; a program with a claim's secret may have stored anything. */
const DEPTH_MAX = 1_000;
/** JSON that takes several milliseconds to parse. */
const LARGE_CHARS = 256 * 1024;

/**
 * The value of a stored text. Other calls have their turn between the parsing of a large one, where a megabyte takes 5 to 50 ms, and
 * what is done with it: the first wait ends after the sockets of this turn of the event loop, the second after those of the next.
 */
async function jsonOf(ref: string, text: string): Promise<Json> {
  if (isDeeper(text, DEPTH_MAX))
    throw notAvailable(ref, `it has more than ${DEPTH_MAX} lists and maps within each other`);
  let json: Json;
  try {
    json = JSON.parse(text) as Json;
  } catch (cause) {
    throw notAvailable(ref, "it is not JSON", cause);
  }
  if (text.length > LARGE_CHARS) {
    await setImmediate();
    await setImmediate();
  }
  return json;
}

function isJson(contentType: string): boolean {
  return /^[^;]*[/+]json *(;|$)/.test(contentType);
}
