import { randomBytes } from "node:crypto";
import type { PayloadStore } from "../../ports/payload-store.ts";
import { type Database, transaction } from "../../repositories/database/database.ts";
import { violatedConstraint } from "../../repositories/database/error-codes.ts";
import {
  type ClaimKey,
  isClaimed,
  type ResultRow,
  type SavedRow,
  saveInRow,
} from "../../repositories/results/results.ts";
import {
  abandonWriting,
  beginWriting,
  finishWriting,
  WRITING_MS_MAX,
  type Writing,
} from "../../repositories/results/write.ts";
import type { ResultScope, ResultStoreName } from "../../schema/api/results.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { kvRowPlace } from "../../schema/words/result.ts";
import type { ResultRemover } from "./delete-results.ts";
import type { TakenPayload } from "./receive-payload.ts";
import { type PayloadStores, type TierLimits, tiersFor } from "./storage-tiers.ts";

/** A payload that has arrived, and how it is to be kept. */
export interface Keeping {
  executionId: string;
  ref: string;
  /** Undefined: the engine's own. */
  claim: ClaimKey | undefined;
  payload: TakenPayload;
  /** `auto`, or a store's name. */
  store: string;
  scope: ResultScope;
  ttlMs: number;
  contentType: string;
}

/** A payload that is kept. */
export interface KeptResult {
  store: ResultStoreName;
  bytes: number;
  sha256: string;
  compression: "gzip" | null;
  contentType: string;
  expiresAt: Date;
  /** The location in the store (interface specification, Task result configuration). */
  meta: JsonObject;
  rootExecutionId: string;
}

/** What keeping needs. */
export interface KeepDeps {
  database: Database;
  stores: PayloadStores;
  limits: TierLimits;
  remover: Pick<ResultRemover, "remove">;
}

/** A store must accept a payload within this time. The clean-up waits three times as long. */
const WRITE_MS_MAX = WRITING_MS_MAX / 3;

/**
 * Keeps a payload: in the store that is named, or the first of `auto` that takes it. Throws `FlowError` CONFLICT for a claim
 * that is not the present one, and what {@link tiersFor} and the stores throw.
 */
export async function keepResult(deps: KeepDeps, keeping: Keeping): Promise<KeptResult> {
  const { payload } = keeping;
  const tiers = tiersFor(keeping.store, payload.bytes, deps.stores, deps.limits);
  for (const [index, store] of tiers.entries()) {
    try {
      return await keepIn(deps, store, keeping);
    } catch (error) {
      // A limit of the store that it does not publish.
      const isLast = index === tiers.length - 1;
      if (isLast || !(error instanceof FlowError) || error.code !== "TOO_LARGE") throw error;
    }
  }
  throw new FlowError("INTERNAL", "There is no store, not even the disk");
}

async function keepIn(deps: KeepDeps, name: ResultStoreName, keeping: Keeping): Promise<KeptResult> {
  const { executionId, ref, scope, ttlMs, contentType, payload } = keeping;
  const { bytes, sha256, compression, isSealed } = payload;
  const about: ResultRow = {
    ...{ executionId, ref, store: name, scope, ttlMs, contentType, bytes, sha256, compression, isSealed },
  };
  const store = deps.stores.get(name);
  const { saved, location } =
    name === "kv" ? await intoKv(deps, store, about, keeping) : await intoStore(deps, store, about, keeping);
  if (saved.replaced !== null) await deps.remover.remove([saved.replaced]);
  const { expiresAt, rootExecutionId } = saved;
  return { ...{ store: name, bytes, sha256, compression, contentType, expiresAt, rootExecutionId }, meta: location };
}

interface Placed {
  saved: SavedRow;
  location: JsonObject;
}

/**
 * Small payloads: the broker's key-value store where there is one, else the row. Work does not wait for the broker, so that
 * the row also has what the broker does not take now. The engine's own are always there: it stores in the middle of a round.
 */
async function intoKv(
  deps: KeepDeps,
  store: PayloadStore | undefined,
  row: ResultRow,
  keeping: Keeping,
): Promise<Placed> {
  if (store !== undefined && keeping.claim !== undefined) {
    try {
      return await intoStore(deps, store, row, keeping);
    } catch (error) {
      const isPassedOn = error instanceof FlowError && (error.code === "UNAVAILABLE" || error.code === "TOO_LARGE");
      if (!isPassedOn) throw error;
    }
  }
  return { saved: await intoRow(deps, row, keeping), location: kvRowPlace(row.ref) };
}

async function intoRow({ database }: KeepDeps, row: ResultRow, { payload, claim }: Keeping): Promise<SavedRow> {
  if (payload.buffer === undefined) throw new FlowError("INTERNAL", `A payload of ${row.bytes} bytes is for no row`);
  const saved = await saveInRow(database, row, payload.buffer, claim);
  if (saved !== undefined) return saved;
  throw await whyNot(database, row, claim);
}

async function intoStore(
  deps: KeepDeps,
  store: PayloadStore | undefined,
  row: ResultRow,
  { payload, claim }: Keeping,
): Promise<Placed> {
  const { database, remover } = deps;
  if (store === undefined) throw new FlowError("INTERNAL", `There is no store '${row.store}'`);
  const writing = randomBytes(16).toString("hex");
  const planned = store.locate(row.executionId, writing);
  const note: Writing = { ...row, writing, location: planned };
  if (!(await beginWriting(database, note, claim))) throw await whyNot(database, row, claim);
  const signal = AbortSignal.timeout(WRITE_MS_MAX);
  try {
    const contentType = row.compression === "gzip" ? "application/gzip" : row.contentType;
    const about = { contentType, ttlMs: row.ttlMs };
    const location = await store.write(planned, payload.body, about, signal);
    const saved = await transaction(database, (tx) => finishWriting(tx, { ...note, location }, claim));
    if (saved !== undefined) return { saved, location };
    throw await whyNot(database, row, claim);
  } catch (error) {
    // Where the database cannot be asked now, the note is found later.
    const removal = await abandonWriting(database, note).catch(() => undefined);
    if (removal !== undefined) await remover.remove([removal]);
    if (violatedConstraint(error) === "result_pkey") throw changed(row.ref);
    throw signal.aborted ? tooSlow(row, error) : error;
  }
}

/** The claim was lost, which ends the work; or another payload came in between, which the same once more puts right. */
async function whyNot(database: Database, { executionId, ref }: ResultRow, claim: ClaimKey | undefined) {
  const isOurs = claim === undefined || (await isClaimed(database, executionId, claim));
  return isOurs ? changed(ref) : notClaimed(ref, claim);
}

function notClaimed(ref: string, { attempt, commandId }: ClaimKey): FlowError {
  const what = `The result ${ref} was not stored: attempt ${attempt} of command ${commandId}`;
  const why = "is not the present claim of a command of that execution. Drop the work: another worker has it";
  return new FlowError("CONFLICT", `${what} ${why}`);
}

function tooSlow({ ref, store }: ResultRow, cause: unknown): FlowError {
  const message = `The result ${ref} was not stored: the store '${store}' took longer than ${WRITE_MS_MAX / 1_000} s`;
  return new FlowError("UNAVAILABLE", `${message}. Try again later`, { cause });
}

function changed(ref: string): FlowError {
  return new FlowError("UNAVAILABLE", `The result ${ref} was not stored: another write came first. Try again`);
}
