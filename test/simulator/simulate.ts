import type { ReportOutcome } from "../../src/services/orchestration/orchestrator.ts";
import { createSteppedClock } from "../../src/testing/stepped-clock.ts";
import { createVirtualBroker } from "./broker.ts";
import { createOperator, type OperatorParts } from "./callers/operator.ts";
import type { TakenDecision } from "./callers/people.ts";
import type { MadeRerun } from "./callers/reruns.ts";
import { type Faults, NO_FAULTS, planFaults, watchFaults } from "./faults.ts";
import { type Ledger, openLedger } from "./ledger.ts";
import type { Simulated } from "./playbooks.ts";
import type { World } from "./process.ts";
import { type Random, seededRandom } from "./random.ts";
import { createServer, type VirtualServer } from "./server.ts";
import { createTables, type Tables } from "./tables.ts";
import { createWorker } from "./worker.ts";

/** A finished run, and all that there is to check about it. */
export interface Simulation {
  playbook: Simulated;
  tables: Tables;
  servers: readonly VirtualServer[];
  ledger: Ledger;
  faults: Faults;
  /** Batches as they were acknowledged. */
  acknowledged: readonly ReportOutcome[];
  /** Executions that an operator started, by idempotency key. */
  started: ReadonlyMap<string, string>;
  /** Executions that were cancelled, or whose time ran out: they need not end as they would have. */
  interfered: ReadonlySet<string>;
  reruns: readonly MadeRerun[];
  /** What people have said that a server has taken. */
  taken: readonly TakenDecision[];
  /** Claims of a command that are lost before it fails. */
  lostClaims: number;
  /** Commands that all workers together run at a time. */
  slots: number;
  /** Virtual milliseconds until the end. */
  lastedMs: number;
}

const START_MS = Date.UTC(2026, 0, 1);
/**
 * Virtual time within which every run must end: faults end after two minutes, and the longest of 3,000 took four; its reruns come one after the
 * other.
 */
const TIME_MAX_MS = 40 * 60_000;
// A worker gives way after 20 ms of work (worker/yield-to-event-loop): a run must be the same on a fast machine and on a slow one.
performance.now = () => 0;

/** The farthest jump of a clock by hours. */
const JUMP_MAX_MS = 12 * 3_600_000;
/** Virtual time after the end, in which what was begun is brought to its end. */
const REST_MS = 5_000;

/**
 * Runs a playbook with the faults of a seed; without a seed, with none. Throws what breaks an invariant on the way. `clocks: "hours"`: those
 * of the servers' machines are hours apart and jump by hours, again and again.
 */
export async function simulate(
  playbook: Simulated,
  seed?: number,
  { clocks }: { clocks?: "hours" } = {},
): Promise<Simulation> {
  const random = seededRandom(seed ?? 1);
  const clock = createSteppedClock(START_MS);
  const faults = seed === undefined ? watchFaults(NO_FAULTS, random, () => false) : planFaults(random, clock);
  const world: World = { clock, random, faults };
  const ledger = openLedger();
  const tables = createTables(() => Math.floor(clock.now()), ledger);
  const errors: unknown[] = [];
  const broken = (error: unknown) => void errors.push(error);
  const acknowledged: ReportOutcome[] = [];
  const broker = createVirtualBroker(world);
  const note = (outcome: ReportOutcome) => void acknowledged.push(outcome);
  // Of the seed and not of the generator: what older seeds found is found by them still.
  const isCramped = seed !== undefined && seed % 3 === 0;
  const runsSteps = seed !== undefined && seed % 4 === 1;
  const reruns = rerunsOf(seed);
  const lostClaims = lostClaimsOf(seed);
  const parts = { ...world, lostClaims, runsSteps, tables, broker, broken, acknowledged: note, isCramped };
  const hours = clocks === undefined ? undefined : seededRandom((seed ?? 1) ^ 0xc10c);
  const wrong = () => hours && { wrongByMs: hours.between(-JUMP_MAX_MS, JUMP_MAX_MS) };
  const servers = Array.from({ length: random.between(1, 3) }, () => createServer({ ...parts, ...wrong() }));
  const script = { random, ledger, rows: { all: playbook.rows, left: new Map(), given: new Map() } };
  const capacities = Array.from({ length: random.between(1, 4) }, () => random.between(1, 3));
  const workers = capacities.map((capacity, index) =>
    createWorker({ ...world, name: `w${index + 1}`, capacity, servers, script, broken }),
  );
  const slots = capacities.reduce((sum, capacity) => sum + capacity, 0);
  const operator = createOperator({
    ...world,
    servers,
    tables,
    playbook,
    interferes: seed !== undefined,
    reruns,
    broken,
  });
  jumpNowAndThen(world, [...servers, ...workers]);
  if (hours !== undefined) jumpByHours(world, hours, servers);

  const isAtRest = () =>
    operator.isDone() &&
    [...tables.store.executions.values()].every(({ endedAt }) => endedAt !== null) &&
    [...tables.store.batches.values()].every(({ state }) => state !== "accepted") &&
    workers.every((worker) => worker.running() === 0) &&
    servers.every((server) => server.isUp());
  const runUntil = async (isOver: () => boolean) => {
    while (!isOver()) {
      const goesOn = await clock.step();
      if (errors.length > 0) throw errors[0];
      if (goesOn && clock.now() - START_MS < TIME_MAX_MS) continue;
      throw new Error(`It did not end: ${describe(tables)}`);
    }
  };
  await runUntil(isAtRest);
  const lastedMs = clock.now() - START_MS;
  faults.end();
  await runUntil(() => clock.now() - START_MS - lastedMs > REST_MS && isAtRest());
  const { started, interfered, reruns: made, taken } = operator;
  const about = { started, interfered, reruns: made, taken, lostClaims, slots, lastedMs };
  return { playbook, tables, servers, ledger, faults, acknowledged, ...about };
}

/** Without faults every rerun that is possible; else by chance in every second run, drawn beside what older seeds have drawn. */
function rerunsOf(seed: number | undefined): OperatorParts["reruns"] {
  if (seed === undefined) return "each";
  return seed % 2 === 0 ? "none" : seededRandom(seed ^ 0x5eed);
}

/** In one run of five a command fails after one, two or three lost claims; in the others never, so that each ends as expected. */
function lostClaimsOf(seed: number | undefined): number {
  return seed === undefined || seed % 5 !== 4 ? Number.MAX_SAFE_INTEGER : 1 + (Math.floor(seed / 5) % 3);
}

function jumpNowAndThen(world: World, clocks: { jump(ms: number): void }[]): void {
  const { clock, random, faults } = world;
  if (faults.plan.jump === 0) return;
  clock.after(10_000, () => {
    if (faults.happens("jump")) random.pick(clocks).jump(random.between(-90_000, 90_000));
    jumpNowAndThen(world, clocks);
  });
}

/** Faults end after a time: clocks that are wrong do not. */
function jumpByHours(world: World, random: Random, servers: readonly VirtualServer[]): void {
  world.clock.after(random.between(500, 5_000), () => {
    random.pick(servers).jump(random.between(-JUMP_MAX_MS, JUMP_MAX_MS));
    jumpByHours(world, random, servers);
  });
}

function describe({ store }: Tables): string {
  const open = [...store.executions.values()].filter(({ endedAt }) => endedAt === null);
  const executions = open.map(({ executionId, path, status }) => `${executionId} (${path}) ${status}`);
  const commands = [...store.commands.values()]
    .filter(({ status }) => status === "PENDING" || status === "CLAIMED" || status === "RUNNING")
    .map(({ commandId, step, status, attempt, worker }) => `${commandId} ${step} ${status} ${attempt} ${worker}`);
  return `executions ${executions.join("; ") || "none"}; commands ${commands.join("; ") || "none"}`;
}
