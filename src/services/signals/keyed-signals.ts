import type { Database } from "../../repositories/database/database.ts";
import { reserveIds } from "../../repositories/database/ids.ts";
import {
  countWaitersLeft,
  endTaking,
  endWalk,
  insertSignal,
  type NewWait,
  newWaits,
  nextWaiters,
  noteLooked,
  noteWalk,
  releaseSignal,
  type SignalRow,
  takeKeptSignal,
  takeSignal,
} from "../../repositories/signals/signals.ts";
import { decideUserAccess } from "../../schema/rules/access-rules.ts";
import type { Signal } from "../../schema/words/command.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Access } from "../access/access.ts";
import type { EveryonesSignal, Orchestrator, SignalOutcome } from "../orchestration/orchestrator.ts";

/** A signal to everyone, as triggers take it. */
export interface KeyedSignal extends Signal {
  signalId: string;
  /** When it was sent, RFC 3339. */
  at: string;
  by: string;
  /** By whose rights it acts; absent: an operator's. */
  userId?: string;
}

/** Signals to all executions that wait for them (control, rules 23 to 25). */
export interface KeyedSignals {
  /**
   * Sends a signal; resolves when it is durable and has reached all that wait for it, or after {@link SEND_MS}: then it goes on in the
   * background, and those that wait still count as reached. It is kept for an hour by default. Throws `FlowError` RATE_LIMITED for too many of its name and key.
   */
  send(signal: Omit<KeyedSignal, "signalId" | "at">, keepMs?: number): Promise<SignalOutcome>;
  /**
   * Goes on with what other servers have left, and gives new waits the signals that were kept for them, for at most some {@link SEND_MS}. For the
   * background.
   */
  workOff(): Promise<void>;
}

/** What {@link createKeyedSignals} needs. */
export interface KeyedSignalsDeps {
  database: Database;
  orchestrator: Pick<Orchestrator, "signalWaiters">;
  access: Pick<Access, "user">;
  /**
   * Starts what is to start with a signal; the number of triggers. Called outside of any transaction once the signal is durable, and again
   * if its server dies: it counts once by the signal's id. Default: nothing is.
   */
  triggers?(signal: KeyedSignal): Promise<number>;
  /** Milliseconds of a clock that does not jump. */
  busy(): number;
  /** The store is away: what failed is tried again. */
  unavailable(error: unknown): FlowError | undefined;
  /** Reports what an execution was not told for. */
  onFault(error: unknown): void;
}

/** How long a signal is kept that reaches none, where its sender does not say. */
const KEEP_MS = 3_600_000;
/** How long its sender's name for it is known. */
const KNOWN_MS = 86_400_000;
/** Signals of one name and key that are kept or on their way at a time. */
export const KEPT_MAX = 1_000;
/** How long a caller waits for a signal to reach all. */
const SEND_MS = 2_000;
/** Executions that are told together. */
const SLICE = 500;
/** A server that is silent for so long has died: another one goes on. */
const LEASE_MS = 10_000;
/** Waits that one look takes, and kept signals that it offers each. */
const LOOK = { waits: 500, kept: KEPT_MAX };

/** The signals of a database. */
export function createKeyedSignals(deps: KeyedSignalsDeps): KeyedSignals {
  const { database, busy } = deps;
  return {
    async send({ name, key = "", id = null, data, by, userId = null }, keepMs = KEEP_MS) {
      const [signalId = ""] = await reserveIds(database, 1);
      const asked = { signalId, name, key, senderId: id, data, sentBy: by, userId, keepMs };
      const row = await insertSignal(database, asked, { leaseMs: LEASE_MS, knownMs: KNOWN_MS, openMax: KEPT_MAX });
      if (row === undefined) return { reached: 0, kept: false, duplicate: true };
      if (row === "full") throw tooMany(name, key);
      const began = busy();
      const end = await walk(deps, row, () => busy() - began < SEND_MS);
      if (end.isOver) return { reached: end.reached, kept: end.isKept, duplicate: false };
      const left = await countWaitersLeft(database, end.row, COUNTED_MAX);
      return { reached: end.row.reached + left, kept: false, duplicate: false };
    },
    async workOff() {
      const began = busy();
      const mayGoOn = () => busy() - began < SEND_MS;
      for (let isAny = true; isAny && mayGoOn(); ) {
        const row = await takeSignal(database, LEASE_MS);
        if (row !== undefined) await walk(deps, row, mayGoOn);
        isAny = (await giveKept(deps)) || row !== undefined;
      }
    },
  };
}

/** Waits that an answer counts. */
const COUNTED_MAX = 1_000_000;

function tooMany(name: string, key: string): FlowError {
  const of = key === "" ? "" : ` with key '${key}'`;
  const why = `${KEPT_MAX} of them${of} are kept that no step has waited for yet`;
  return new FlowError(
    "RATE_LIMITED",
    `Signal '${name}' was not sent: ${why}. Send it when a step waits for it, or keep it for a shorter time`,
  );
}

type WalkEnd = { isOver: true; reached: number; isKept: boolean } | { isOver: false; row: SignalRow };

/** Tells all that wait for a signal, in slices, for as long as it may. Told twice, an execution goes on once. */
async function walk(deps: KeyedSignalsDeps, from: SignalRow, mayGoOn: () => boolean): Promise<WalkEnd> {
  const { database } = deps;
  let row = from;
  try {
    if (row.walkedTo === null && deps.triggers !== undefined) {
      const reached = await deps.triggers(keyedOf(row));
      row = (await noteWalk(database, row.signalId, { walkedTo: "0", reached, leaseMs: LEASE_MS })) ?? row;
    }
    while (mayGoOn()) {
      const waiters = await nextWaiters(database, row, SLICE);
      const last = waiters.at(-1);
      if (last === undefined) {
        const end = await endWalk(database, row.signalId);
        return { isOver: true, reached: end?.reached ?? row.reached, isKept: end?.state === "kept" };
      }
      const may = await rightsOf(deps, row);
      const told = waiters.filter(({ path }) => may(path));
      const counts = await Promise.all(told.map(({ executionId }) => tell(deps, executionId, signalOf(row))));
      const reached = counts.reduce((sum, count) => sum + count, 0);
      const noted = await noteWalk(database, row.signalId, { walkedTo: last.executionId, reached, leaseMs: LEASE_MS });
      // Another server has taken it for lost, and is ahead.
      if (noted === undefined) return { isOver: false, row };
      row = noted;
    }
  } catch (error) {
    await releaseSignal(database, row.signalId).catch(() => undefined);
    throw error;
  }
  await releaseSignal(database, row.signalId);
  return { isOver: false, row };
}

/** Which paths the sender may execute at this moment. */
async function rightsOf({ access }: KeyedSignalsDeps, { userId }: SignalRow): Promise<(path: string) => boolean> {
  if (userId === null) return () => true;
  const user = await access.user({ userId });
  return (path) => user !== undefined && decideUserAccess(user, "execute", path).allowed;
}

/** The number of waits that end with it. Rejects only while the store is away. */
async function tell(deps: KeyedSignalsDeps, executionId: string, signal: EveryonesSignal): Promise<number> {
  try {
    return await deps.orchestrator.signalWaiters(executionId, signal);
  } catch (error) {
    const isAway = error instanceof FlowError ? error.code === "UNAVAILABLE" : deps.unavailable(error) !== undefined;
    if (isAway) throw error;
    // One that cannot go on does not hold back the others.
    deps.onFault(error);
    return 0;
  }
}

/** Gives waits that are new the signals that were kept for them; true if there may be more. */
async function giveKept(deps: KeyedSignalsDeps): Promise<boolean> {
  const { database } = deps;
  const waits = await newWaits(database, LOOK.waits, LOOK.kept);
  if (waits.length === 0) return false;
  const looked: NewWait[] = [];
  for (const wait of waits) if (!wait.isSent && (await giveFirst(deps, wait))) looked.push(wait);
  if (looked.length > 0) await noteLooked(database, looked);
  return waits.length === LOOK.waits;
}

/** Whether the wait needs no further look: a signal has ended it, or none of those that are kept is for it. */
async function giveFirst(deps: KeyedSignalsDeps, { executionId, path, kept }: NewWait): Promise<boolean> {
  const { database } = deps;
  let isSure = true;
  for (const signalId of kept) {
    const row = await takeKeptSignal(database, signalId, executionId, LEASE_MS);
    if (row === undefined) {
      // It may come back from the execution that has it now.
      isSure = false;
      continue;
    }
    const once = { ...signalOf(row), atMost: 1 };
    const isGone = row.before !== null && (await tell(deps, row.before, once)) > 0;
    const may = await rightsOf(deps, row);
    const hasReached = isGone || (may(path) && (await tell(deps, executionId, once)) > 0);
    await endTaking(database, signalId, hasReached);
    if (hasReached && !isGone) return true;
  }
  return isSure;
}

function signalOf({ signalId, name, key, senderId, data, sentBy, createdAt }: SignalRow): EveryonesSignal {
  const words = defined({ key: key === "" ? undefined : key, id: senderId ?? undefined });
  return { signalId, name, data, by: sentBy, at: createdAt.getTime(), ...words };
}

function keyedOf(row: SignalRow): KeyedSignal {
  const { at, ...signal } = signalOf(row);
  const userId = defined({ userId: row.userId ?? undefined });
  return { ...signal, by: row.sentBy, at: new Date(at).toISOString(), ...userId };
}
