import type { Database } from "../../repositories/database/database.ts";
import { reserveIds } from "../../repositories/database/ids.ts";
import { type ClaimPolicy, judgeClaim, mayHaveBeen } from "../../repositories/orchestration/claimable-commands.ts";
import {
  deregisterWorker,
  findLiveWorker,
  isReplaced,
  listWorkers,
  noteGone,
  type PoolWorker,
  recordHeartbeat,
  registerRuntime,
  type StoppedIterations,
} from "../../repositories/workers/workers.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { Listed, PageQuery } from "../catalog/catalog.ts";
import type { Orchestrator } from "../orchestration/orchestrator.ts";
import type { ClaimedCommand, ClaimInput } from "../orchestration/rounds/types.ts";
import { encodeCursor, textCursor } from "../pagination-cursor.ts";
import { createBrokenOff, GONE_MS } from "./broken-off.ts";
import type { CancelNotices } from "./cancel-notices.ts";

/** A worker that registers. */
export interface NewWorker {
  name: string;
  capacity: number;
  labels: JsonObject;
  /** Kinds of task that it runs. */
  capabilities: readonly string[];
  /** Process id, host name, version. */
  about: JsonObject;
  /** Identifies its process, if it sends one. */
  instance?: string;
  /** Processes from which it may take the name while they live; undefined: from every one. */
  replaces?: readonly (string | undefined)[];
}

/** A worker's sign of life. */
export interface WorkerHeartbeat {
  name: string;
  /** As sent at registration. */
  instance?: string;
  running: readonly { commandId: string; attempt: number }[];
  draining: boolean;
  /** How long the answer may wait for a command to stop, in milliseconds. Leases are renewed at once. */
  waitMs?: number;
}

/** The answer to a heartbeat. */
export interface HeartbeatResult {
  cancel: string[];
  /** Iterations to stop, of commands that go on. */
  iterations: StoppedIterations[];
  lost: string[];
  /** Duration of the renewed leases. */
  leaseMs: number;
}

/** The pool of workers (Worker protocol). */
export interface Workers {
  /**
   * Registers, or registers again under the same name; returns the id of its row and how long leases last. Commands that
   * another process held under this name are offered at once: that process was killed, or is to stop. Throws `FlowError` CONFLICT
   * for a name that another process has which lives and may not be replaced.
   */
  register(worker: NewWorker): Promise<{ runtimeId: string; leaseMs: number }>;
  /**
   * Renews the leases of the worker's running commands, and returns the commands to stop: cancelled ones, and those it no
   * longer owns. Commands that the database assigns to the worker and that it does not list (the answer to its claim was lost)
   * are offered to others. Throws `FlowError` `unknown` if it must register again, CONFLICT if another process has registered
   * under its name since. With `waitMs` it returns a cancellation as soon as that is written; the signal ends the wait. `left` is
   * aborted when the client disconnects: where no heartbeat follows, its name is free after {@link GONE_MS}.
   */
  heartbeat(heartbeat: WorkerHeartbeat, signal?: AbortSignal, left?: AbortSignal): Promise<HeartbeatResult>;
  /**
   * Signs the worker off; the commands it still holds are offered to others at once, by every server. Nothing happens for a
   * name that is not registered, or that another process has taken since.
   */
  deregister(name: string, instance?: string): Promise<void>;
  /** Ordered by name. `isStale`: ready or draining by its own report, but silent for too long. */
  list(page: PageQuery): Promise<Listed<PoolWorker & { isStale: boolean }>>;
  /**
   * One command by its id. Throws `FlowError` NOT_FOUND, `already_terminal`, or `active_claim` with the seconds after which to
   * ask again in `detail.retry_after_seconds`.
   */
  claimOne(
    commandId: string,
    worker: string,
    work?: Pick<ClaimInput, "isOfPool" | "runsPath">,
  ): Promise<ClaimedCommand>;
}

/** What the worker pool needs. */
export interface WorkersDeps {
  database: Database;
  orchestrator: Pick<Orchestrator, "offer" | "claimOne" | "dismiss">;
  /** Commands were given back: any server may have a worker for them. */
  onReturned(commandIds: readonly string[]): void;
  cancelNotices: Pick<CancelNotices, "listen">;
  /** Called with an error of work that no caller waits for. */
  onFault(error: unknown): void;
  policy: ClaimPolicy;
  /** `FLOW_COMMAND_CLAIM_LEASE_SECONDS`, milliseconds. */
  leaseMs: number;
  /** Milliseconds since 1970. */
  now(): number;
}

/** A worker that lists a command for so long after its end does not know of it: its execution was deleted. Milliseconds. */
const ENDED_MS = 30_000;

/**
 * Of the commands that a worker lists although they have ended, those that it has listed for {@link ENDED_MS}. Workers stop listing
 * a command when its report is answered.
 */
function createStillListed(now: () => number): (worker: string, ended: readonly string[]) => string[] {
  const since = new Map<string, ReadonlyMap<string, number>>();
  return (worker, ended) => {
    const before = since.get(worker);
    const listed = new Map(ended.map((id) => [id, before?.get(id) ?? now()]));
    if (listed.size === 0) since.delete(worker);
    else since.set(worker, listed);
    return ended.filter((id) => now() - (listed.get(id) ?? 0) >= ENDED_MS);
  };
}

const NEVER = new AbortController().signal;

/** A claim's answer takes at most this long to reach the worker, milliseconds. */
const ANSWER_MS = 10_000;

/** The pool of workers in a database. */
export function createWorkers(deps: WorkersDeps): Workers {
  const { database, orchestrator, cancelNotices, policy, leaseMs } = deps;
  const brokenOff = createBrokenOff((worker) => noteGone(database, { ...worker, silentMs: GONE_MS }), deps.onFault);
  const stillListed = createStillListed(deps.now);
  const record = async (heartbeat: Omit<WorkerHeartbeat, "waitMs">) => {
    if (heartbeat.draining) orchestrator.dismiss(heartbeat.name);
    const found = await recordHeartbeat(database, { ...heartbeat, leaseMs, graceMs: ANSWER_MS });
    if (found === undefined) {
      if (await isReplaced(database, heartbeat.name, heartbeat.instance)) throw replaced(heartbeat.name);
      throw new FlowError("unknown", `No worker '${heartbeat.name}' is registered here. Register again`);
    }
    // Of a process that says who it is, the answer to a claim was lost; one that does not may be another process by now.
    const abandoned = { worker: heartbeat.name, isGone: heartbeat.instance === undefined };
    if (found.unlisted.length > 0) void orchestrator.offer(found.unlisted, abandoned);
    const { cancelled: cancel, stopped: iterations } = found;
    return { cancel, iterations, lost: [...found.lost, ...stillListed(heartbeat.name, found.ended)] };
  };
  return {
    async register({ replaces, ...worker }) {
      if (replaces !== undefined) await checkName(database, worker.name, replaces, policy.staleMs);
      const [runtimeId = ""] = await reserveIds(database, 1);
      const registered = await registerRuntime(database, { ...worker, runtimeId, kind: "worker" });
      const { id, released, isGone } = registered;
      if (released.length > 0) void orchestrator.offer(released, { worker: worker.name, isGone });
      return { runtimeId: id, leaseMs };
    },
    async heartbeat({ waitMs = 0, ...heartbeat }, signal = NEVER, left = NEVER) {
      const { name, instance } = heartbeat;
      if (instance !== undefined) brokenOff.came({ name, instance });
      // Before the database is queried, so that a cancellation between the two is not missed.
      const listener = waitMs > 0 ? cancelNotices.listen(heartbeat.name) : undefined;
      try {
        const told = await record(heartbeat);
        if (listener === undefined || told.cancel.length > 0 || told.lost.length > 0) return { ...told, leaseMs };
        const { commands, iterations } = await listener.next(waitMs, signal);
        // Told at each heartbeat, and not without a wait each time: the command that goes on is listed for long.
        const since = new Set(iterations.map(({ commandId }) => commandId));
        const before = told.iterations.filter(({ commandId }) => !since.has(commandId));
        return { cancel: commands, iterations: [...before, ...iterations], lost: [], leaseMs };
      } finally {
        listener?.close();
        if (left.aborted && instance !== undefined) brokenOff.left({ name, instance });
      }
    },
    async deregister(name, instance) {
      const released = await deregisterWorker(database, name, instance);
      if (released === undefined || released.length === 0) return;
      void orchestrator.offer(released, { worker: name, isGone: false });
      deps.onReturned(released);
    },
    async list({ limit, cursor }) {
      const key = cursor === undefined ? {} : { cursor: textCursor(cursor) };
      const { items, next } = await listWorkers(database, { limit, ...key });
      const shown = items.map((worker) => ({
        ...worker,
        isStale: worker.status !== "offline" && worker.heartbeatAgeMs > policy.staleMs,
      }));
      return { items: shown, nextCursor: next === undefined ? null : encodeCursor(next) };
    },
    async claimOne(commandId, worker, work) {
      const claimed = await orchestrator.claimOne(commandId, worker, work);
      if (claimed !== undefined) return claimed;
      throw await refusal(database, policy, commandId, worker);
    },
  };
}

/** Every worker could otherwise take another one's name, and so its commands. */
async function checkName(
  database: Database,
  name: string,
  replaces: readonly (string | undefined)[],
  staleMs: number,
): Promise<void> {
  const live = await findLiveWorker(database, name, staleMs);
  if (live === undefined || (live.instance !== null && replaces.includes(live.instance))) return;
  const what = `Another process is registered as worker '${name}', with a heartbeat in the last ${staleMs / 1_000} s`;
  const next = "The name is free when that one signs off, ends or falls silent. Or use another one (FLOW_WORKER_NAME)";
  throw new FlowError("CONFLICT", `${what}. ${next}`);
}

function replaced(name: string): FlowError {
  const what = `Another process has registered as worker '${name}' since and now runs this worker's commands`;
  return new FlowError("CONFLICT", `${what}. Give each worker a different name (FLOW_WORKER_NAME)`);
}

async function refusal(database: Database, policy: ClaimPolicy, commandId: string, worker: string): Promise<FlowError> {
  const judged = await judgeClaim(database, commandId, policy);
  if (judged === undefined) {
    if (await mayHaveBeen(database, commandId)) return ended(commandId, "it has ended, or never was a command");
    return new FlowError("NOT_FOUND", `There is no command ${commandId}`);
  }
  const { status, leaseRestMs } = judged;
  if (status === "COMPLETED" || status === "FAILED" || status === "CANCELLED") {
    return ended(commandId, `it has ended (${status})`);
  }
  // Claimable by now, or held by a worker that may keep it although its lease has expired: the next heartbeat decides.
  const seconds = Math.max(1, Math.ceil(leaseRestMs / 1_000));
  const holder = judged.worker === worker ? "this worker holds it already" : "another worker holds it";
  const reason = judged.worker === null ? "another claim of it is under way" : holder;
  return new FlowError("active_claim", `Command ${commandId} was not claimed: ${reason}`, {
    detail: { reason, retry_after_seconds: seconds },
  });
}

function ended(commandId: string, reason: string): FlowError {
  return new FlowError("already_terminal", `Command ${commandId} was not claimed: ${reason}`, { detail: { reason } });
}
