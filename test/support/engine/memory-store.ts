import type {
  AcceptedBatch,
  ApprovalChange,
  ApprovalMessage,
  BatchChange,
  CommandChange,
  CommandStatus,
  ExecutionChange,
  ExecutionStart,
  ExecutionStore,
  Flush,
  FlushOutcome,
  IssuedCommand,
  KnownBatch,
  ParkedCommand,
  ReadyCommand,
  Requirement,
  Snapshot,
  StoredExecution,
} from "../../../src/ports/execution-store.ts";
import { type EventRecord, recordOf } from "../../../src/schema/rules/event-record.ts";
import type { Command } from "../../../src/schema/words/command.ts";
import { keyOf } from "../../../src/services/orchestration/rounds/ready-queue.ts";

/** A row of the execution table. */
export interface ExecutionRow extends StoredExecution {
  progress: number;
  start: ExecutionStart;
  result?: unknown;
  error?: unknown;
  /** Milliseconds since 1970, by the store's clock; null while it is open. */
  endedAt: number | null;
  deadlineAt: number | null;
}

/** A row of the command table. */
export interface CommandRow extends IssuedCommand {
  executionId: string;
  issuedAt: number;
  leaseExpiresAt: number | null;
  claimedAt: number | null;
}

/** A row of the batch table. */
export interface BatchRow extends BatchChange {
  accept: NonNullable<BatchChange["accept"]>;
  updatedAt: number;
  /** Until when one that was taken over belongs to its new owner alone. */
  leaseUntil: number;
}

/**
 * A store in memory, with its tables open to be looked at. Everything that goes in and out is a copy, by way of JSON; events, which
 * are read most, are copied once and frozen.
 */
export interface MemoryStore extends ExecutionStore {
  executions: Map<string, ExecutionRow>;
  events: Map<string, EventRecord[]>;
  /** Every snapshot of an execution, oldest first. */
  snapshots: Map<string, Snapshot[]>;
  /** Those that are open, and a few that have ended. */
  commands: Map<string, CommandRow>;
  /** What commands were given when they were issued, as JSON; for tests to compare with. */
  issuedBodies: Map<string, string>;
  batches: Map<string, BatchRow>;
  /** What parked commands wait for, by command. */
  waits: Map<string, ParkedCommand & { executionId: string; takenUntil: number }>;
  /** Approvals by their id, each as its changes have made it. */
  approvals: Map<string, ApprovalChange>;
  /** Messages about approvals, by approval and number. */
  messages: Map<string, ApprovalMessage>;
  /** Statements that wrote. */
  flushes: number;
}

/** Thrown for an idempotency key that is taken, as a unique index does. */
export class DuplicateKey extends Error {}

/** Whether a command that is held may be taken from its worker. */
export type ClaimPolicy = (row: CommandRow) => boolean;

/** How long a batch that was taken over is left to its new owner. */
const TAKEOVER_MS = 60_000;

/**
 * The port as the simulator and fast tests have it. `now` is the store's clock; the policy by default gives up every command
 * whose lease is over. All of a call happens at once, as one transaction does.
 */
export function createMemoryStore(
  now: () => number,
  policy: ClaimPolicy = ({ leaseExpiresAt }) => (leaseExpiresAt ?? 0) <= now(),
  hasSignedOff: (worker: string | null) => boolean = () => false,
): MemoryStore {
  // Beyond 32 bits, where ids of an object's keys keep the order in which they were added.
  let lastId = 5_000_000_000;
  const store: MemoryStore = {
    executions: new Map(),
    events: new Map(),
    snapshots: new Map(),
    commands: new Map(),
    issuedBodies: new Map(),
    batches: new Map(),
    waits: new Map(),
    approvals: new Map(),
    messages: new Map(),
    flushes: 0,
    async reserveIds(count) {
      lastId += count;
      return lastId;
    },
    async find(id) {
      const row = store.executions.get(id);
      return row === undefined ? undefined : storedOf(row);
    },
    async snapshotUpTo(id, eventId, format) {
      const known = (store.snapshots.get(id) ?? []).filter((one) => one.format === format && one.eventId <= eventId);
      return copy(known.at(-1) ?? null);
    },
    async eventsAfter(id, after, limit) {
      return (store.events.get(id) ?? []).filter(({ event_id }) => event_id > after).slice(0, limit);
    },
    async flush(flush) {
      return write(store, copy(flush), now());
    },
    async pendingRequirements(after, limit) {
      const requirements = new Map<string, Requirement>();
      for (const { status, kinds, labels } of store.commands.values()) {
        if (status === "PENDING") requirements.set(keyOf({ kinds, labels }), copy({ kinds, labels }));
      }
      const later = [...requirements].filter(([key]) => after === undefined || key > keyOf(after));
      return later
        .sort(([left], [right]) => (left < right ? -1 : 1))
        .slice(0, limit)
        .map(([, requirement]) => requirement);
    },
    async pendingCommands(wanted) {
      const rows = [...store.commands.values()].filter(({ status }) => status === "PENDING").sort(byId);
      const found = wanted.flatMap(({ requirement, after = "0", limit }) =>
        rows
          .filter((row) => keyOf(row) === keyOf(requirement) && Number(row.commandId) > Number(after))
          .slice(0, limit),
      );
      return [...new Set(found)].sort(byId).map(readyOf);
    },
    async claimableCommands(ids, abandoned) {
      const rows = ids.flatMap((id) => store.commands.get(id) ?? []).sort(byId);
      const isGivenUp = (row: CommandRow) => isHeld(row) && (row.worker === abandoned?.worker || policy(row));
      const isLost = ({ worker }: CommandRow) =>
        worker === abandoned?.worker ? abandoned?.isGone === true : !hasSignedOff(worker);
      return rows
        .filter((row) => row.status === "PENDING" || isGivenUp(row))
        .map((row) => ({ ...readyOf(row), lostBy: isHeld(row) && isLost(row) ? row.worker : null }));
    },
    async returnedCommands(limit) {
      const rows = [...store.commands.values()].filter((row) => isHeld(row) && hasSignedOff(row.worker));
      return rows
        .filter(({ leaseExpiresAt }) => (leaseExpiresAt ?? 0) <= now())
        .sort(byId)
        .slice(0, limit)
        .map((row) => ({ ...readyOf(row), lostBy: null }));
    },
    async commandBodies(ids) {
      return ids.flatMap((id): Command[] => {
        const row = store.commands.get(id);
        return row === undefined ? [] : [copy(row.body)];
      });
    },
    async unprocessedBatches(idleMs, limit) {
      const isLeft = ({ state, updatedAt, leaseUntil }: BatchRow) =>
        state === "accepted" && updatedAt <= now() - idleMs && leaseUntil <= now();
      const byAge = (left: BatchRow, right: BatchRow) => Number(left.requestId) - Number(right.requestId);
      const rows = [...store.batches.values()].filter(isLeft).sort(byAge).slice(0, limit);
      for (const row of rows) Object.assign(row, { updatedAt: now(), leaseUntil: now() + TAKEOVER_MS });
      return rows.map(
        ({ requestId, accept }): AcceptedBatch =>
          copy({ requestId, executionIds: accept.executionIds, eventIds: accept.eventIds }),
      );
    },
    async executionsOf(commandIds) {
      const known = commandIds.flatMap((id) => {
        const executionId = store.commands.get(id)?.executionId;
        return executionId === undefined ? [] : [[id, executionId] as const];
      });
      return new Map(known);
    },
    async findBatch(caller, key) {
      const rows = [...store.batches.values()];
      const row = rows.find(({ accept }) => accept.caller === caller && accept.idempotencyKey === key);
      if (row === undefined) return undefined;
      const { requestId, commandsGenerated, accept } = row;
      const { bodySha256, eventIds } = accept;
      return copy({ requestId, commandsGenerated, bodySha256, eventIds } satisfies KnownBatch);
    },
    async findStart(caller, key) {
      const rows = [...store.executions.values()];
      const row = rows.find(({ start }) => start.idempotency?.caller === caller && start.idempotency.key === key);
      if (row === undefined) return undefined;
      return { executionId: row.executionId, bodySha256: row.start.idempotency?.bodySha256 ?? "", status: row.status };
    },
    async overdueExecutions(limit) {
      const isOverdue = ({ endedAt, deadlineAt }: ExecutionRow) =>
        endedAt === null && deadlineAt !== null && deadlineAt <= now();
      const rows = [...store.executions.values()].filter(isOverdue);
      return rows.slice(0, limit).map(({ executionId }) => executionId);
    },
    async takeDueWaits(leaseMs, limit) {
      const due = [...store.waits.values()]
        .filter(({ dueAt, takenUntil }) => dueAt !== null && dueAt <= now() && takenUntil <= now())
        .sort((left, right) => (left.dueAt ?? 0) - (right.dueAt ?? 0))
        .slice(0, limit);
      for (const row of due) row.takenUntil = now() + leaseMs;
      const takenAt = now();
      return due.map(({ commandId, executionId, dueAt }) => ({ commandId, executionId, dueAt: dueAt ?? 0, takenAt }));
    },
  };
  return store;
}

/** True while a worker has it. */
export function isHeld({ status }: { status: CommandStatus }): boolean {
  return status === "CLAIMED" || status === "RUNNING";
}

function copy<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

/** A JSON value that nothing can change any more: to change it throws. */
function frozen<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  for (const key in value) frozen(value[key]);
  return Object.freeze(value);
}

function isOpen(status: string): boolean {
  return (
    status === "PENDING" || status === "CLAIMED" || status === "RUNNING" || status === "PAUSED" || status === "PARKED"
  );
}

function byId(left: { commandId: string }, right: { commandId: string }): number {
  return Number(left.commandId) - Number(right.commandId);
}

function readyOf({ commandId, executionId, kinds, labels, attempt }: CommandRow): ReadyCommand {
  return copy({ commandId, executionId, kinds, labels, attempt });
}

function storedOf(row: ExecutionRow): StoredExecution {
  const { executionId, catalogId, path, version, status, lastEventId, parentExecutionId, rootExecutionId } = row;
  const { startedBy, snapshot } = row;
  return copy({
    executionId,
    catalogId,
    path,
    version,
    status,
    lastEventId,
    parentExecutionId,
    rootExecutionId,
    startedBy,
    snapshot,
  });
}

/** Everything, or by throwing nothing; what belongs to an execution only if that is still where it was decided on. */
function write(store: MemoryStore, { executions, batches }: Flush, now: number): FlushOutcome {
  checkKeys(store, executions, batches);
  store.flushes += 1;
  const moved = new Set<string>();
  for (const change of executions) if (writeExecution(store, change, now)) moved.add(change.executionId);
  const left = new Set(executions.map(({ executionId }) => executionId).filter((id) => !moved.has(id)));
  for (const batch of batches) if (!batch.executionIds.some((id) => left.has(id))) writeBatch(store, batch, now);
  return { moved, at: now };
}

function checkKeys(store: MemoryStore, executions: readonly ExecutionChange[], batches: readonly BatchChange[]): void {
  const accepted = batches.flatMap(({ accept }) => (accept === undefined ? [] : [accept]));
  const ofBatches = new Set(
    accepted.length === 0 ? [] : [...store.batches.values()].map(({ accept }) => batchKey(accept)),
  );
  for (const accept of accepted) take(ofBatches, batchKey(accept));
  const ofStarts = new Set([...store.executions.values()].map(({ start }) => startKey(start)));
  for (const { executionId, start } of executions) {
    if (start !== undefined && !store.executions.has(executionId)) take(ofStarts, startKey(start));
  }
}

function batchKey({ caller, idempotencyKey }: BatchRow["accept"]): string | undefined {
  return idempotencyKey === null ? undefined : `${caller}\n${idempotencyKey}`;
}

function startKey({ idempotency }: ExecutionStart): string | undefined {
  return idempotency === null ? undefined : `${idempotency.caller}\n${idempotency.key}`;
}

function take(keys: Set<string | undefined>, key: string | undefined): void {
  if (key === undefined) return;
  if (keys.has(key)) throw new DuplicateKey(`The key ${key} is taken`);
  keys.add(key);
}

function writeBatch(store: MemoryStore, batch: BatchChange, now: number): void {
  const known = store.batches.get(batch.requestId);
  if (known !== undefined && known.state !== "accepted") return;
  const accept = batch.accept ?? known?.accept;
  if (accept === undefined) return;
  store.batches.set(batch.requestId, { ...batch, accept, updatedAt: now, leaseUntil: 0 });
}

function writeExecution(store: MemoryStore, change: ExecutionChange, now: number): boolean {
  const row = store.executions.get(change.executionId);
  if (change.start !== undefined ? row !== undefined : row?.lastEventId !== change.expectedEventId) return false;
  const { executionId, status, lastEventId, progress, snapshot } = change;
  const kept = row ?? begin(executionId, change.start);
  const isOver = kept.endedAt !== null;
  const end = { status, progress, endedAt: isOpen(status) ? null : now };
  store.executions.set(executionId, {
    ...kept,
    // One that has ended stays as it is: late events only move its place in the log.
    ...(!isOver && end),
    ...(!isOver && change.result !== undefined && { result: change.result }),
    ...(!isOver && change.error !== undefined && { error: change.error }),
    lastEventId,
    snapshot: (snapshot?.eventId ?? 0) > (kept.snapshot?.eventId ?? 0) ? (snapshot ?? null) : kept.snapshot,
  });
  if (snapshot !== undefined) {
    store.snapshots.set(executionId, [...(store.snapshots.get(executionId) ?? []), snapshot]);
  }
  const log = store.events.get(executionId) ?? [];
  store.events.set(executionId, log);
  for (const entry of change.events) log.push(frozen(recordOf(entry, change)));
  for (const issued of change.issued) {
    if (store.issuedBodies.has(issued.commandId)) throw new Error(`Command ${issued.commandId} was issued twice`);
    store.issuedBodies.set(issued.commandId, JSON.stringify(issued.body));
    const isClaimed = issued.worker !== null;
    const leaseExpiresAt = isClaimed && issued.leaseMs !== null ? now + issued.leaseMs : null;
    const claimedAt = isClaimed ? now : null;
    store.commands.set(issued.commandId, { ...issued, executionId, issuedAt: now, leaseExpiresAt, claimedAt });
  }
  for (const command of change.commands) writeCommand(store, executionId, command, now);
  for (const id of change.unparked ?? []) store.waits.delete(id);
  for (const wait of change.parked ?? []) store.waits.set(wait.commandId, { ...wait, executionId, takenUntil: 0 });
  for (const one of change.approvals ?? []) writeApproval(store, one);
  for (const message of change.messages ?? []) {
    const key = `${message.approvalId}-${message.number}`;
    if (store.messages.has(key)) throw new Error(`Message ${key} was written twice`);
    store.messages.set(key, message);
  }
  for (const id of change.ended) {
    const known = store.commands.get(id);
    if (known?.executionId === executionId && isOpen(known.status)) store.commands.delete(id);
  }
  return true;
}

function writeApproval(store: MemoryStore, change: ApprovalChange): void {
  const known = store.approvals.get(change.approvalId);
  if (change.opened !== undefined && known !== undefined) throw new Error(`${change.approvalId} was opened twice`);
  if (known?.outcome !== undefined) throw new Error(`Approval ${change.approvalId} was closed before`);
  const decisions = [...(known?.decisions ?? []), ...change.decisions];
  const people = decisions.map(({ by }) => by);
  if (new Set(people).size < people.length) throw new Error(`A person decided ${change.approvalId} twice`);
  if (known !== undefined || change.opened !== undefined)
    store.approvals.set(change.approvalId, { ...known, ...change, decisions });
}

function begin(executionId: string, start: ExecutionStart | undefined): ExecutionRow {
  if (start === undefined) throw new Error(`Execution ${executionId} begins without a start`);
  const { catalogId, path, version, parentExecutionId, rootExecutionId, deadlineAt } = start;
  const startedBy = start.startedBy ?? null;
  const about = {
    executionId,
    catalogId,
    path,
    version,
    parentExecutionId,
    rootExecutionId,
    startedBy,
    deadlineAt,
    start,
  };
  return { ...about, status: "PENDING", progress: 0, lastEventId: 0, snapshot: null, endedAt: null };
}

/** A change that is not a claim keeps its time and its lease; a cancellation knows nothing of later claims. */
function writeCommand(store: MemoryStore, executionId: string, change: CommandChange, now: number): void {
  const row = store.commands.get(change.commandId);
  if (row === undefined || row.executionId !== executionId || !isOpen(row.status)) return;
  const isClaim = change.leaseMs !== null;
  row.attempt = Math.max(row.attempt, change.attempt);
  row.status = change.status;
  row.worker = change.worker;
  if (change.worker === null) Object.assign(row, { leaseExpiresAt: null, claimedAt: null });
  else if (isClaim) Object.assign(row, { leaseExpiresAt: now + (change.leaseMs ?? 0), claimedAt: now });
}
