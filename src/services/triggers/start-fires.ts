import { createHash } from "node:crypto";
import { coalesce } from "../../platform/concurrency/coalesce.ts";
import type { StartedFire } from "../../ports/execution-store.ts";
import type { Database } from "../../repositories/database/database.ts";
import { unavailable, violatedConstraint } from "../../repositories/database/error-codes.ts";
import {
  beginDeciding,
  endDeciding,
  endFires,
  type FireOutcome,
  type NewFire,
  noteLastFires,
  openExecutionsOf,
  postponeFires,
  type QueuedFire,
  queueOf,
} from "../../repositories/triggers/fires.ts";
import type { TriggerRow } from "../../repositories/triggers/triggers.ts";
import type { FireStatus, TriggerKind } from "../../schema/triggers/trigger.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { Executions } from "../executions/executions.ts";

/** Whose idempotency keys the executions of triggers have. No caller of the API has this name. */
export const TRIGGER_KEYS = "trigger";
/** Fires that wait behind an open execution. Of more the newest are skipped. */
export const QUEUE_MAX = 100;
/** How long a fire is left to the server that took it: if that dies, another one decides then. */
export const TAKEN_MS = 5_000;
/** How long one may decide about the fires of a trigger alone. */
const DECIDING_MS = 15_000;
/** Fires of a trigger that are decided in one turn. */
const TURN_MAX = QUEUE_MAX + 50;
/** Time between two looks whether the execution that a fire waits for has ended. */
const QUEUE_LOOK_MS = 1_000;
/** Open executions of a trigger that one turn looks at: `cancel_running` ends them all. */
const OPEN_MAX = 1_000;

/** What has become of a fire, for metrics. */
export interface FiredNotice {
  kind: TriggerKind;
  status: FireStatus;
  /** How long after its time it was decided, ms. */
  lateMs: number;
}

/** What starting fires needs. */
export interface StartFiresDeps {
  database: Database;
  executions: Pick<Executions, "start" | "cancel">;
  now(): number;
  /** A name that no other call has. */
  newName(): string;
  onFired(notice: FiredNotice): void;
  onFault(error: unknown): void;
}

/**
 * Decides about queued fires: starts what may start now, each at most once whichever servers try it, and writes what has become of them. What is
 * not in the answer stays queued: behind an open execution, or because the server is too busy. Never rejects.
 */
export type StartFires = (
  fires: readonly QueuedFire[],
  triggers: ReadonlyMap<string, TriggerRow>,
) => Promise<Map<string, FireOutcome>>;

/** What has become of a fire, and of the execution that it started. */
interface Ended extends FireOutcome {
  isOpen?: boolean;
  /** Its outcome was written with its execution. */
  isWritten?: boolean;
}

type Deps = StartFiresDeps & {
  noteStarted(fireId: string): void;
  /** Fires that this server is starting. If that takes longer than they are left to it, it must not start them once more beside. */
  underWay: Set<string>;
};

/** A new fire as one that is to be decided. */
export function queuedOf(
  fire: Pick<NewFire, "fireId" | "triggerId" | "key" | "dueAt" | "input"> &
    Partial<Pick<QueuedFire, "waits" | "always">>,
): QueuedFire {
  const { fireId, triggerId, key, dueAt, input, waits = false, always = false } = fire;
  return { fireId, triggerId, key, dueAt: new Date(dueAt), input: input ?? "{}", waits, always, isNew: true };
}

/** Starting of fires, by a server. */
export interface FireStarts {
  start: StartFires;
  /**
   * Writes a fire and starts its execution, both or neither. Undefined: the trigger may have fired for its key, or the server is too busy; then
   * it is to be written as queued. Skipped or failed: nothing is written. Never rejects.
   */
  startNew(trigger: TriggerRow, fire: NewFire): Promise<FireOutcome | undefined>;
}

/** Creates {@link FireStarts}. */
export function createFireStarts(given: StartFiresDeps): FireStarts {
  const deps: Deps = { ...given, noteStarted: createNoteStarted(given), underWay: new Set() };
  return { start: createStartFires(deps), startNew: (trigger, fire) => startNew(deps, trigger, fire) };
}

function createStartFires(deps: Deps): StartFires {
  /** The last turn of each trigger that is being decided about here. */
  const turns = new Map<string, Promise<unknown>>();
  const inTurn = async (trigger: TriggerRow) => {
    const before = turns.get(trigger.triggerId) ?? Promise.resolve();
    const own = before.then(() => takeTurn(deps, trigger));
    const settled = own.catch(() => undefined);
    turns.set(trigger.triggerId, settled);
    await settled;
    if (turns.get(trigger.triggerId) === settled) turns.delete(trigger.triggerId);
    return await own;
  };
  return async (fires, triggers) => {
    const outcomes = new Map<string, FireOutcome>();
    try {
      const serial = new Map<string, TriggerRow>();
      const free: QueuedFire[] = [];
      for (const fire of fires) {
        const trigger = triggers.get(fire.triggerId);
        if (trigger === undefined || trigger.definition.overlap === "allow" || fire.always) free.push(fire);
        else serial.set(fire.triggerId, trigger);
      }
      const started = await Promise.all(inLines(free).map((line) => startLine(deps, line, triggers)));
      const ended = started.flat();
      await write(deps, ended, new Map(free.map((fire) => [fire.fireId, fire])), triggers);
      for (const outcome of ended) outcomes.set(outcome.fireId, outcome);
      for (const turn of await Promise.all([...serial.values()].map(inTurn))) {
        for (const outcome of turn) outcomes.set(outcome.fireId, outcome);
      }
    } catch (error) {
      // What was decided and could not be written is decided again: it has its execution by then.
      if (unavailable(error) === undefined) deps.onFault(error);
    }
    return outcomes;
  };
}

/** Times of one trigger that are made up for are one line; every other fire is one of its own. */
function inLines(fires: readonly QueuedFire[]): QueuedFire[][] {
  const lines = new Map<string, QueuedFire[]>();
  for (const fire of fires) {
    const key = fire.waits ? fire.triggerId : `/${fire.fireId}`;
    lines.set(key, [...(lines.get(key) ?? []), fire]);
  }
  return [...lines.values()];
}

/** Starts the fires of a line one after another, the oldest first. Behind one that is to be tried again the rest stays queued. */
async function startLine(
  deps: Deps,
  line: readonly QueuedFire[],
  triggers: ReadonlyMap<string, TriggerRow>,
): Promise<Ended[]> {
  const outcomes: Ended[] = [];
  for (const fire of line) {
    const outcome = await startFire(deps, triggers.get(fire.triggerId), fire);
    if (outcome === undefined) return outcomes;
    outcomes.push(outcome);
  }
  return outcomes;
}

async function write(
  deps: Deps,
  outcomes: readonly Ended[],
  fires: ReadonlyMap<string, QueuedFire>,
  triggers: ReadonlyMap<string, TriggerRow>,
): Promise<void> {
  const unwritten = outcomes.filter(({ isWritten }) => isWritten !== true);
  if (unwritten.length > 0) await endFires(deps.database, unwritten);
  const now = deps.now();
  for (const { fireId, status } of outcomes) {
    const fire = fires.get(fireId);
    const kind = fire === undefined ? undefined : triggers.get(fire.triggerId)?.kind;
    if (fire === undefined || kind === undefined) continue;
    deps.onFired({ kind, status, lateMs: Math.max(0, now - fire.dueAt.getTime()) });
    if (status === "started") deps.noteStarted(fireId);
  }
}

/** Writes when triggers have started something last: beside the starts, and for all of them that came meanwhile at once. */
function createNoteStarted({ database, onFault }: StartFiresDeps): (fireId: string) => void {
  const note = coalesce((_, fireIds: readonly string[]) => noteLastFires(database, fireIds));
  return (fireId) => {
    note("", fireId).catch((error: unknown) => {
      if (unavailable(error) === undefined) onFault(error);
    });
  };
}

/** Decides about the queue of a trigger whose executions may not overlap, alone among all servers. */
async function takeTurn(deps: Deps, trigger: TriggerRow): Promise<FireOutcome[]> {
  const { database } = deps;
  const { triggerId } = trigger;
  const by = deps.newName();
  if (!(await beginDeciding(database, triggerId, { by, leaseMs: DECIDING_MS }))) return [];
  try {
    const queue = (await queueOf(database, triggerId, TURN_MAX)).filter(({ always }) => !always);
    const open = new Set(await openExecutionsOf(database, triggerId, OPEN_MAX));
    const outcomes: Ended[] = [];
    const waiting: string[] = [];
    for (const fire of queue) {
      const outcome = await decideFire(deps, { trigger, fire, open, place: waiting.length });
      if (outcome === undefined) waiting.push(fire.fireId);
      else outcomes.push(outcome);
    }
    await write(deps, outcomes, new Map(queue.map((fire) => [fire.fireId, fire])), new Map([[triggerId, trigger]]));
    if (waiting.length > 0) await postponeFires(database, waiting, QUEUE_LOOK_MS);
    return outcomes;
  } finally {
    await endDeciding(database, triggerId, by).catch(() => undefined);
  }
}

/** One fire of a trigger whose executions may not overlap; undefined: it waits. */
async function decideFire(
  deps: Deps,
  { trigger, fire, open, place }: { trigger: TriggerRow; fire: QueuedFire; open: Set<string>; place: number },
): Promise<Ended | undefined> {
  const { overlap } = trigger.definition;
  if (overlap === "cancel_running") {
    for (const id of open)
      await deps.executions.cancel(id, { reason: "The trigger's next execution is about to start", cascade: true });
    open.clear();
  }
  // One that waits keeps its place before those that came later.
  if (open.size > 0 || place > 0) {
    const [first] = open;
    if (overlap === "skip" && !fire.waits)
      return ended(fire, "skipped", `Execution ${first ?? "of an earlier fire"} is open`);
    return place < QUEUE_MAX ? undefined : ended(fire, "skipped", `${QUEUE_MAX} fires wait before it`);
  }
  const outcome = await startFire(deps, trigger, fire);
  if (outcome?.executionId != null && outcome.isOpen === true) open.add(outcome.executionId);
  return outcome;
}

/** Starts the execution of a fire, once however often it is called; undefined: it is to be tried again. */
async function startFire(deps: Deps, trigger: TriggerRow | undefined, fire: QueuedFire): Promise<Ended | undefined> {
  if (trigger === undefined) return ended(fire, "skipped", "The trigger no longer exists");
  if (deps.underWay.has(fire.fireId)) return undefined;
  deps.underWay.add(fire.fireId);
  try {
    return await startOnce(deps, trigger, fire);
  } finally {
    deps.underWay.delete(fire.fireId);
  }
}

async function startNew(deps: Deps, trigger: TriggerRow, fire: NewFire): Promise<FireOutcome | undefined> {
  const outcome = await startOnce(deps, trigger, queuedOf(fire), fire);
  if (outcome?.status !== "started") return outcome;
  if (outcome.isWritten !== true) return undefined;
  deps.onFired({ kind: trigger.kind, status: "started", lateMs: Math.max(0, deps.now() - fire.dueAt) });
  deps.noteStarted(fire.fireId);
  return outcome;
}

/** `newFire`: it is written with the execution. */
async function startOnce(
  deps: Deps,
  trigger: TriggerRow,
  fire: QueuedFire,
  newFire?: StartedFire,
): Promise<Ended | undefined> {
  const { triggerId, name, path, userId } = trigger;
  try {
    const { executionId, status, duplicate } = await deps.executions.start({
      path,
      input: JSON.parse(fire.input) as JsonObject,
      bytes: fire.input.length,
      origin: { kind: "trigger", id: triggerId, name },
      ...defined({ startedBy: userId === null ? undefined : Number(userId) }),
      idempotency: {
        caller: TRIGGER_KEYS,
        key: `${triggerId}/${fire.key}`,
        bodySha256: createHash("sha256").update(fire.key).digest("hex"),
        isNew: fire.isNew,
      },
      ...(newFire === undefined ? { fireId: fire.fireId } : { newFire }),
    });
    const isOpen = !(status === "COMPLETED" || status === "FAILED" || status === "CANCELLED");
    return { fireId: fire.fireId, status: "started", executionId, reason: null, isOpen, isWritten: !duplicate };
  } catch (error) {
    if (unavailable(error) !== undefined) return undefined;
    if (newFire !== undefined && violatedConstraint(error) !== undefined) return undefined;
    if (!(error instanceof FlowError)) {
      deps.onFault(error);
      return ended(fire, "failed", "The server failed to start it; its log says why");
    }
    if (LATER.has(error.code)) return undefined;
    return ended(fire, SKIPPED.has(error.code) ? "skipped" : "failed", error.message);
  }
}

/** Errors that say nothing about the fire. */
const LATER: ReadonlySet<string> = new Set([
  "UNAVAILABLE",
  "TIMEOUT",
  "RATE_LIMITED",
  "queue_unavailable",
  "ack_timeout",
]);

/** Errors that say that it is not to start now. */
const SKIPPED: ReadonlySet<string> = new Set(["playbook_paused", "CONCURRENCY_SKIPPED"]);

function ended({ fireId }: QueuedFire, status: "skipped" | "failed", reason: string): FireOutcome {
  return { fireId, status, executionId: null, reason };
}
