import assert from "node:assert/strict";
import { createDatabaseClock } from "../../src/adapters/database-clock.ts";
import type { ServerCall } from "../../src/adapters/server/connection.ts";
import { resultOf } from "../../src/engine/state/results.ts";
import type { ExecutionState } from "../../src/engine/state/state.ts";
import { boundedResult } from "../../src/language/views/bounded-result.ts";
import type { ServerReply } from "../../src/schema/routes/answer.ts";
import { FlowError } from "../../src/schema/words/errors.ts";
import type { JsonObject } from "../../src/schema/words/json.ts";
import type { Notice } from "../../src/schema/words/notice.ts";
import {
  createExecutionReader,
  type ExecutionReader,
  type ExecutionView,
} from "../../src/services/executions/execution-reader.ts";
import { createOrchestrator } from "../../src/services/orchestration/create-orchestrator.ts";
import type { IterationPace } from "../../src/services/orchestration/memory/iteration-pace.ts";
import type {
  Orchestrator,
  OrchestratorObserver,
  ReportOutcome,
} from "../../src/services/orchestration/orchestrator.ts";
import type { PureSteps } from "../../src/services/orchestration/rounds/pure-steps.ts";
import { createOwnNotices, type OwnNotices } from "../../src/services/workers/own-notices.ts";
import { createPureSteps } from "../../src/worker/command/pure-steps.ts";
import { DuplicateKey } from "../support/engine/memory-store.ts";
import { type ApiParts, answer } from "./api.ts";
import type { VirtualBroker } from "./broker.ts";
import type { Answering } from "./network.ts";
import { programOf } from "./playbooks.ts";
import { type Process, startProcess, type World } from "./process.ts";
import { disturbed, disturbedStore, STORE_ERRORS } from "./store.ts";
import { type Tables, TIMES } from "./tables.ts";

/** What a virtual server is made of. */
export interface ServerParts extends World {
  tables: Tables;
  broker: VirtualBroker;
  /** Memory has room for few commands that wait. */
  isCramped: boolean;
  /** Servers run steps without effects themselves. */
  runsSteps: boolean;
  /** Claims of a command that are lost before it fails. */
  lostClaims: number;
  /** Its machine's clock is wrong by hours, and it goes by the store's, as the role `server` does; absent: it goes by its own. */
  wrongByMs?: number;
  /** A batch was acknowledged to its sender. */
  acknowledged(outcome: ReportOutcome): void;
  /** Something was thrown, or told as a fault, where nothing may be: the run is a failure. */
  broken(error: unknown): void;
}

/** What a server knows of an execution; undefined where it finds none, or has it not in memory. */
export type Looks = Record<"read" | "inMemory", Pick<ExecutionView, "state" | "lastEventId"> | undefined>;

/** A virtual server: the real `createAdvance` in processes that crash and are started again, each with nothing in memory. */
export interface VirtualServer extends Answering {
  /** An execution as the living process reads it, and as it has it in memory. */
  look(executionId: string): Promise<Looks>;
  /** Tells it to stop. Rejects when something is still waited for afterwards. */
  stop(): Promise<void>;
  jump(ms: number): void;
}

/** Milliseconds between two runs of each piece of upkeep. */
const EVERY = { poll: 5_000, recover: 5_000, expire: 5_000, wake: 1_000, sweep: 10_000, reap: 10_000 };
/** How often a server looks at the store's clock. */
const LOOK_MS = 700;
/** A batch is taken from its server when nothing happened to it for so long. */
const IDLE_MS = 5_000;
/** Two slow statements in a row may be under way when a server stops. */
const ANSWER_MS = 60_000;
const LIMITS = { leaseMs: TIMES.leaseMs, ackMs: 250, queueMax: 1_024, processingMs: 15_000, processors: 1 };
/** A queue of ready commands in which a run's commands do not all find room. */
const FEW = { groupMax: 2, readyMax: 3, groupMin: 1 };

/** Starts a server. */
export function createServer(parts: ServerParts): VirtualServer {
  const { clock, random, wrongByMs } = parts;
  let offsetMs = wrongByMs ?? 0;
  let life: Life | undefined;
  let isStopping = false;

  const begin = () => {
    const process = startProcess(parts, {
      crash: "serverCrash",
      freeze: "serverFreeze",
      offset: () => offsetMs,
      // One timer for all deadlines ticks every 25 ms: too often for a run of minutes.
      shortestSleepMs: 500,
    });
    process.onDeath(() => {
      life = undefined;
      clock.after(random.between(100, 8_000), begin);
    });
    if (wrongByMs === undefined) life = live(parts, process);
    else
      void goByTheStore(parts, process).then(() => {
        life = live(parts, process);
      });
  };
  begin();

  return {
    isUp: () => life !== undefined && !isStopping,
    async look(executionId) {
      const look = async () => {
        const cached = life?.orchestrator.inMemory().find((entry) => entry.executionId === executionId);
        // What a round has decided and not yet written may be taken back.
        const inMemory = cached?.busy === true ? undefined : copyOf(cached?.live ?? undefined);
        return { read: copyOf(await life?.reader.read(executionId, 0)), inMemory };
      };
      // A load that was under way when the faults ended may still fail: the next one does not.
      return await clock.runUntil(look().catch(look));
    },
    async stop() {
      if (life === undefined) return;
      isStopping = true;
      const { orchestrator, pending } = life;
      await clock.runUntil(orchestrator.close());
      assert.equal(orchestrator.queueDepth(), 0, "Jobs wait in a server that has stopped");
      const until = clock.now() + ANSWER_MS;
      while (pending.size > 0 && clock.now() < until) await clock.advance(1_000);
      const left = [...pending].map(({ path, body }) => `${path} ${body}`);
      assert.deepEqual(left, [], "Calls were not answered by a server that has stopped");
    },
    jump: (ms) => {
      offsetMs += ms;
    },
    onDeath: (call) => life?.process.onDeath(call) ?? (() => {}),
    serve: (call, gone) => life?.serve(call, gone) ?? new Promise(() => {}),
  };
}

/** Resolves when it has heard the store's clock; it hears it again and again. */
async function goByTheStore(parts: ServerParts, process: Process): Promise<void> {
  const { clock } = parts;
  const query = disturbed(process, parts);
  const own = createDatabaseClock(process.clock, clock.now);
  process.clock = own;
  const hear = async () => {
    const askedAt = clock.now();
    own.heard(await query(async () => Math.floor(clock.now())), askedAt, clock.now());
  };
  while (!(await hear().then(yes, no))) await process.clock.sleep(500);
  process.repeat(LOOK_MS, () => void hear().catch(no));
}

const yes = () => true;
const no = () => false;

/** The state goes on changing. */
function copyOf(view: Pick<ExecutionView, "state" | "lastEventId"> | undefined): Looks["read"] {
  return view && { ...view, state: JSON.parse(JSON.stringify(view.state)) as ExecutionState };
}

/** Name under which servers claim. */
export const STEPS_SERVER = "server";

/** Steps whose tool does nothing but answer: what the scripted tools do beside that is seen from outside. */
function pureSteps({ clock }: Process, { random }: World): PureSteps {
  const real = createPureSteps({
    worker: STEPS_SERVER,
    clock,
    random: random.next,
    signal: new AbortController().signal,
  });
  const isPlain = (config: JsonObject) => Object.keys(config).every((key) => key === "result");
  return {
    ...real,
    suits: (program, step) =>
      real.suits(program, step) && step.tasks.every(({ task }) => task.kind === "wait" || isPlain(task.config)),
  };
}

/** Iterations share commands, now two and now none: times are virtual, so that a server learns nothing from them. */
function sharing(): IterationPace {
  let asked = 0;
  return {
    note: () => undefined,
    atOnce() {
      asked += 1;
      return asked % 4 === 0 ? 1 : 2;
    },
  };
}

interface Life {
  process: Process;
  orchestrator: Orchestrator;
  reader: ExecutionReader;
  pending: Set<ServerCall>;
  serve(call: ServerCall, gone: AbortSignal): Promise<ServerReply>;
}

function live(parts: ServerParts, process: Process): Life {
  const { tables, broker, broken } = parts;
  const query = disturbed(process, parts);
  const ownNotices = createOwnNotices();
  const save = (ref: string, json: string) => query(async () => void tables.payloads.set(ref, JSON.parse(json)));
  const store = disturbedStore(tables.store, process, parts);
  const programs = async (id: string) => programOf(id);
  const reader = createExecutionReader({ store, programs, now: process.clock.now });
  const orchestrator = createOrchestrator({
    store,
    programs,
    results: { load: (ref) => query(async () => tables.payloads.get(ref) ?? null), save },
    clock: process.clock,
    ...(parts.runsSteps && { pureSteps: pureSteps(process, parts) }),
    defer: (call) => setImmediate(() => void process.gate().then(call)),
    env: {},
    pace: sharing(),
    limits: {
      ...LIMITS,
      lostClaims: parts.lostClaims,
      deliveries: Number.POSITIVE_INFINITY,
      ...(parts.isCramped && { ready: FEW }),
    },
    resultOf: (state) => {
      const result = resultOf(state);
      return result === null ? null : boundedResult(result);
    },
    isDuplicateKey: (error) => error instanceof DuplicateKey,
    ...STORE_ERRORS,
    observer: observe(parts, ownNotices),
  });
  const pending = new Set<ServerCall>();
  const api: ApiParts = { ...parts, orchestrator, reader, process, query, store };
  const hear = (notice: Notice) => {
    if (notice.kind === "execution") {
      const { executionId, lastEventId, ended = false } = notice;
      orchestrator.moved(executionId, { lastEventId: Number(lastEventId), hasEnded: ended });
    }
    if (notice.kind !== "commands") return;
    const commandIds = ownNotices.fromOthers(notice.commandIds);
    if (commandIds.length > 0) void orchestrator.offer(commandIds);
  };
  process.onDeath(broker.subscribe(hear));
  keepUp(orchestrator, process, tables, query, broken);
  return {
    process,
    orchestrator,
    reader,
    pending,
    async serve(call, gone) {
      pending.add(call);
      try {
        return await answer(api, call, gone);
      } finally {
        pending.delete(call);
      }
    },
  };
}

function observe({ broker, broken }: ServerParts, ownNotices: OwnNotices): OrchestratorObserver {
  return {
    committed({ unclaimed }) {
      if (unclaimed.length === 0) return;
      ownNotices.published(unclaimed);
      broker.publish({ kind: "commands", commandIds: [...unclaimed] });
    },
    batchAccepted: () => undefined,
    ackTimedOut: () => undefined,
    firstClaim: () => undefined,
    claimed: () => undefined,
    returned: (commandIds) => broker.publish({ kind: "commands", commandIds: [...commandIds] }),
    fault: (error) => broken(error),
  };
}

/** What a server does beside its requests, from its first moment on. */
function keepUp(
  orchestrator: Orchestrator,
  process: Process,
  { workers }: Tables,
  query: ReturnType<typeof disturbed>,
  broken: (error: unknown) => void,
): void {
  const { recovery } = orchestrator;
  const again = (everyMs: number, work: () => Promise<unknown>) => {
    let isRunning = false;
    const once = async () => {
      if (isRunning) return;
      isRunning = true;
      try {
        await work();
      } catch (error) {
        const isAway = error instanceof FlowError && error.code === "UNAVAILABLE";
        if (!isAway && STORE_ERRORS.unavailable(error) === undefined) broken(error);
      }
      isRunning = false;
    };
    process.repeat(everyMs, () => void once());
    process.after(0, () => void once());
  };
  let isFirst = true;
  again(EVERY.recover, () => {
    const idleMs = isFirst ? 0 : IDLE_MS;
    isFirst = false;
    return recovery.recover(idleMs);
  });
  again(EVERY.poll, () => recovery.poll());
  again(EVERY.expire, () => recovery.expire());
  again(EVERY.wake, () => recovery.wake());
  again(EVERY.sweep, async () => recovery.sweep());
  again(EVERY.reap, async () => orchestrator.offer(await query(async () => workers.stranded())));
}
