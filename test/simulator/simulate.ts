import { createSteppedClock, type SteppedClock } from "../../src/adapters/stepped-clock.ts";
import { isTerminal } from "../../src/engine/state.ts";
import type { FlowEvent } from "../../src/schema/event.ts";
import type { Json } from "../../src/schema/json.ts";
import { type Faults, NO_FAULTS, planFaults, watchFaults } from "./faults.ts";
import { type Ledger, openLedger } from "./ledger.ts";
import { createNetwork } from "./network.ts";
import type { Simulated } from "./playbooks.ts";
import { type Random, seededRandom } from "./random.ts";
import { createServer, type Server } from "./server.ts";
import { createWorker, type Worker } from "./worker.ts";

/** A finished run, and all that there is to check about it. */
export interface Simulation {
  playbook: Simulated;
  server: Server;
  ledger: Ledger;
  faults: Faults;
  payloads: ReadonlyMap<string, Json>;
  /** Somebody cancelled it, or its time ran out: it need not end as it would have. */
  isInterfered: boolean;
  /** Virtual milliseconds until the end. */
  lastedMs: number;
}

const START_MS = Date.UTC(2026, 0, 1);
/** Virtual time within which every run must end. Faults end after three minutes. */
const TIME_MAX_MS = 4 * 3_600_000;

/** Runs a playbook with the faults of a seed; without a seed, with none. Throws what breaks an invariant on the way. */
export async function simulate(playbook: Simulated, seed?: number): Promise<Simulation> {
  const random = seededRandom(seed ?? 1);
  const clock = createSteppedClock(START_MS);
  const faults = seed === undefined ? watchFaults(NO_FAULTS, random, () => false) : planFaults(random, clock);
  const network = createNetwork(clock, random, faults);
  const ledger = openLedger();
  const payloads = new Map<string, Json>();
  const errors: unknown[] = [];
  const workers: Worker[] = [];
  const { program } = playbook;
  const announce = () => {
    for (const worker of workers) network.tell(worker.wake);
  };
  const server = createServer({ program, clock, random, faults, payloads }, announce);
  const script = { clock, random, ledger, rows: { left: [...(playbook.rows ?? [])], given: new Map() } };
  const eager = playbook.isOrdered !== true && random.chance(0.3);
  for (let index = random.between(1, 4); index > 0; index -= 1) {
    const capacity = random.between(1, 3);
    const broken = (error: unknown) => errors.push(error);
    workers.push(
      createWorker({
        name: `w${index}`,
        capacity,
        eager,
        program,
        clock,
        faults,
        network,
        server,
        script,
        payloads,
        broken,
      }),
    );
  }
  server.start();
  const isInterfered = seed !== undefined && interfere(server, clock, random);
  jumpNowAndThen(clock, random, faults, [server, ...workers]);
  const isOver = () => isTerminal(server.state.status) && workers.every((worker) => worker.running() === 0);
  while (!isOver()) {
    await clock.step();
    if (errors.length > 0) throw errors[0];
    if (clock.now() - START_MS > TIME_MAX_MS) throw new Error(`It did not end: ${describe(server)}`);
  }
  return { playbook, server, ledger, faults, payloads, isInterfered, lastedMs: clock.now() - START_MS };
}

/** In one run of ten somebody cancels, or the run's time is over, at some moment. */
function interfere(server: Server, clock: SteppedClock, random: Random): boolean {
  if (!random.chance(0.1)) return false;
  const at = clock.now();
  const event: FlowEvent = random.chance(0.5)
    ? { type: "execution.cancelled", at, reason: "somebody asked for it" }
    : {
        type: "workflow.failed",
        at,
        error: { kind: "timeout", code: "TIMEOUT", message: "too long", retryable: false },
      };
  clock.after(random.between(0, 20_000), () => server.interfere(event));
  return true;
}

function jumpNowAndThen(
  clock: SteppedClock,
  random: Random,
  faults: Faults,
  clocks: { jump(ms: number): void }[],
): void {
  if (faults.plan.jump === 0) return;
  clock.after(10_000, () => {
    if (faults.happens("jump")) random.pick(clocks).jump(random.between(-90_000, 90_000));
    jumpNowAndThen(clock, random, faults, clocks);
  });
}

function describe({ state, rows }: Server): string {
  const open = [...rows.values()].filter(({ status }) => status !== "ENDED");
  const commands = open.map(({ command, status, attempt }) => `${command.step} ${status} ${attempt}`);
  return `${state.status}, active ${state.active}, waiting ${state.waiting}, commands ${commands.join("; ") || "none"}`;
}
