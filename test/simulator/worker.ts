import type { SteppedClock } from "../../src/adapters/stepped-clock.ts";
import type { Program } from "../../src/engine/program.ts";
import { FlowError } from "../../src/schema/errors.ts";
import type { Json } from "../../src/schema/json.ts";
import { runCommand } from "../../src/worker/run-command.ts";
import { openDelivery } from "./delivery.ts";
import type { Faults } from "./faults.ts";
import type { Network } from "./network.ts";
import { type Process, startProcess } from "./process.ts";
import type { Claim, Server } from "./server.ts";
import type { Script } from "./tools.ts";
import { virtualDeps } from "./virtual-deps.ts";

/** What a virtual worker is made of. */
export interface WorkerParts {
  name: string;
  /** Commands at a time. */
  capacity: number;
  /** Reports are sent on without waiting for the answer to the one before, so that they overtake each other. */
  eager: boolean;
  program: Program;
  clock: SteppedClock;
  faults: Faults;
  network: Network;
  server: Server;
  script: Script;
  payloads: Map<string, Json>;
  /** Something was thrown where nothing may be: the run is a failure. */
  broken(error: unknown): void;
}

/** A virtual worker: the real `runCommand`, in processes that crash and are started again. */
export interface Worker {
  /** There may be something to claim. */
  wake(): void;
  /** Commands that it runs. */
  running(): number;
  jump(ms: number): void;
}

/** What a worker holds between a start and a crash. */
interface Life {
  process: Process;
  running: Map<Claim, AbortController>;
  /** Claims that were asked for and not answered. */
  asking: number;
  /** The worker's clock, which jumps. */
  now(): number;
}

const POLL_MS = 4_000;
const HEARTBEAT_MS = 5_000;

/** Makes a worker and starts its first process. */
export function createWorker(parts: WorkerParts): Worker {
  const { clock, faults, script } = parts;
  const { random } = script;
  let offsetMs = 0;
  let life: Life = start();

  function start(): Life {
    const process = startProcess(clock, random, faults, () => {
      clock.after(random.between(100, 10_000), () => {
        life = start();
      });
    });
    const current: Life = { process, running: new Map(), asking: 0, now: () => clock.now() + offsetMs };
    repeat(clock, process, POLL_MS, () => fill(parts, current));
    repeat(clock, process, HEARTBEAT_MS, () => beat(parts, current));
    fill(parts, current);
    return current;
  }

  return {
    wake: () => fill(parts, life),
    running: () => (life.process.alive ? life.running.size : 0),
    jump: (ms) => {
      offsetMs += ms;
    },
  };
}

/** Does something again and again while the process lives; one that stands still misses its turns. */
function repeat(clock: SteppedClock, process: Process, everyMs: number, action: () => void): void {
  clock.after(everyMs, () => {
    if (!process.alive) return;
    if (process.frozenUntil <= clock.now()) action();
    repeat(clock, process, everyMs, action);
  });
}

/** Claims until the worker has as much as it can do, or there is nothing. */
function fill(parts: WorkerParts, life: Life): void {
  const { clock, network, server, name, capacity } = parts;
  const { process, running } = life;
  if (!process.alive || process.frozenUntil > clock.now() || running.size + life.asking >= capacity) return;
  life.asking += 1;
  network
    .askOnce(process, () => server.claim(name))
    .then((claim) => {
      life.asking -= 1;
      if (claim === undefined || claim === "nothing") return;
      carryOut(parts, life, claim).catch(parts.broken);
      fill(parts, life);
    })
    .catch(parts.broken);
}

/** Runs a claimed command to its end, as a worker's process does. */
async function carryOut(parts: WorkerParts, life: Life, claim: Claim): Promise<void> {
  const { process, running } = life;
  const controller = new AbortController();
  const older = [...running].find(([other]) => other.command.command_id === claim.command.command_id);
  // Claimed again by the worker that held it: the server had given up on the first claim.
  older?.[1].abort(new FlowError("CANCELLED", "claimed again"));
  running.set(claim, controller);
  const delivery = openDelivery(parts, process, claim, controller);
  await process.gate();
  const source = { program: parts.program, file: "simulated.yaml" };
  const deps = virtualDeps(parts, process, claim, life.now);
  await runCommand(deps, source, claim, delivery.send, controller.signal);
  await delivery.finished();
  running.delete(claim);
  fill(parts, life);
}

/** Tells the server what it works on, and stops what is not its business any more. */
function beat({ network, server, name, broken }: WorkerParts, { process, running }: Life): void {
  if (running.size === 0) return;
  // The newest claim of each command: the answer names commands and not claims.
  const claims = [...new Map([...running.keys()].map((claim) => [claim.command.command_id, claim])).values()];
  network
    .askOnce(process, () => server.heartbeat(name, claims))
    .then(async (lost) => {
      await process.gate();
      for (const claim of claims) {
        const isLost = lost?.includes(claim.command.command_id) ?? false;
        if (isLost) running.get(claim)?.abort(new FlowError("CANCELLED", "lost"));
      }
    })
    .catch(broken);
}
