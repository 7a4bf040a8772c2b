import type { SteppedClock } from "../../src/adapters/stepped-clock.ts";
import type { Program } from "../../src/engine/program.ts";
import { FlowError } from "../../src/schema/errors.ts";
import type { FlowEvent } from "../../src/schema/event.ts";
import type { Json } from "../../src/schema/json.ts";
import type { WorkerDeps } from "../../src/worker/deps.ts";
import { runCommand } from "../../src/worker/run-command.ts";
import type { Faults } from "./faults.ts";
import type { Network } from "./network.ts";
import { type Process, startProcess } from "./process.ts";
import type { Answer, Claim, Server } from "./server.ts";
import { type Script, scriptedTool } from "./tools.ts";

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
}

const POLL_MS = 4_000;
const HEARTBEAT_MS = 5_000;
const EARLY_RESEND_MS = 150;

export function createWorker(parts: WorkerParts): Worker {
  const { name, capacity, clock, faults, network, server, script } = parts;
  const { random } = script;
  let offsetMs = 0;
  let life: Life = start();

  function start(): Life {
    const running = new Map<Claim, AbortController>();
    const process = startProcess(clock, random, faults, () => {
      clock.after(random.between(100, 10_000), () => {
        life = start();
      });
    });
    const current: Life = { process, running, asking: 0 };
    schedule(process, POLL_MS, () => fill(current));
    schedule(process, HEARTBEAT_MS, () => beat(current));
    fill(current);
    return current;
  }

  /** Repeats while the process lives; one that stands still misses its turns. */
  function schedule(process: Process, everyMs: number, action: () => void): void {
    clock.after(everyMs, () => {
      if (!process.alive) return;
      if (process.frozenUntil <= clock.now()) action();
      schedule(process, everyMs, action);
    });
  }

  /** Claims until it has as much as it can do, or there is nothing. */
  function fill(current: Life): void {
    const { process, running } = current;
    if (!process.alive || process.frozenUntil > clock.now() || running.size + current.asking >= capacity) return;
    current.asking += 1;
    void network
      .askOnce(process, () => server.claim(name))
      .then((claim) => {
        current.asking -= 1;
        if (claim === undefined || claim === "nothing") return;
        carryOut(current, claim).catch(parts.broken);
        fill(current);
      })
      .catch(parts.broken);
  }

  async function carryOut(current: Life, claim: Claim): Promise<void> {
    const { process, running } = current;
    const controller = new AbortController();
    const older = [...running].find(([other]) => other.command.command_id === claim.command.command_id);
    // Claimed again by the worker that held it: the server had given up on the first claim.
    older?.[1].abort(new FlowError("CANCELLED", "claimed again"));
    running.set(claim, controller);
    const reports = createReports(parts, process, claim, controller);
    await process.gate();
    const source = { program: parts.program, file: "simulated.yaml" };
    await runCommand(deps(process, claim), source, claim, reports.send, controller.signal);
    await reports.sent();
    running.delete(claim);
    fill(current);
  }

  function beat({ process, running }: Life): void {
    if (running.size === 0) return;
    // The newest claim of each command: the answer names commands and not claims.
    const claims = [...new Map([...running.keys()].map((claim) => [claim.command.command_id, claim])).values()];
    void network
      .askOnce(process, () => server.heartbeat(name, claims))
      .then(async (lost) => {
        await process.gate();
        for (const claim of claims) {
          const isLost = lost?.includes(claim.command.command_id) ?? false;
          if (isLost) running.get(claim)?.abort(new FlowError("CANCELLED", "lost"));
        }
      })
      .catch(parts.broken);
  }

  function deps(process: Process, claim: Claim): WorkerDeps {
    const guarded = async <T>(action: () => T): Promise<T> => {
      await process.gate();
      const result = action();
      await process.gate();
      return result;
    };
    return {
      worker: name,
      tools: { get: () => Promise.resolve(scriptedTool(script, process, claim)) },
      credentials: { find: () => Promise.resolve(undefined) },
      children: {
        run: async (request, signal) => {
          await process.gate();
          await clock.sleep(random.between(100, 20_000), signal);
          await process.gate();
          const value = { child: request.path ?? "", input: request.input };
          return { executionId: "77", path: value.child, status: "COMPLETED", result: { value }, error: null };
        },
      },
      results: {
        kind: "memory",
        load: (ref) => guarded(() => payload(parts.payloads, ref)),
        save: (ref, json) =>
          guarded(() => {
            if (!server.holds(claim)) throw new FlowError("CANCELLED", `${ref} is another claim's to store`);
            parts.payloads.set(ref, JSON.parse(json));
            // Each claim's payload counts as another, as the answers of real tools are.
            const sha256 = `${claim.command.command_id}#${claim.attempt}`;
            script.ledger.store(ref, sha256);
            return { sha256, bytes: json.length };
          }),
      },
      clock: {
        now: () => clock.now() + offsetMs,
        sleep: async (ms, signal) => {
          await process.gate();
          await clock.sleep(ms, signal);
          await process.gate();
        },
      },
      random: random.next,
      env: {},
      log: () => undefined,
    };
  }

  return {
    wake: () => fill(life),
    running: () => (life.process.alive ? life.running.size : 0),
    jump: (ms) => {
      offsetMs += ms;
    },
  };
}

function payload(payloads: ReadonlyMap<string, Json>, ref: string): Json {
  const found = payloads.get(ref);
  if (found === undefined) throw new FlowError("REFERENCE_NOT_AVAILABLE", `There is no ${ref}`);
  return found;
}

/** The reports of one command: each sent until it is answered, again later while it is early, no more once refused. */
function createReports(parts: WorkerParts, process: Process, claim: Claim, controller: AbortController) {
  const { network, server, clock, eager, name } = parts;
  const pending: Promise<void>[] = [];
  let serial = 0;
  let isRefused = false;

  const deliver = async (events: FlowEvent[]): Promise<void> => {
    serial += 1;
    const key = `${name}/${claim.command.command_id}/${claim.attempt}/${serial}`;
    for (;;) {
      const answer: Answer = await network.ask(process, () => server.report(key, events));
      await process.gate();
      if (answer === "refused" && !isRefused) {
        isRefused = true;
        controller.abort(new FlowError("CANCELLED", "refused"));
      }
      if (answer !== "early" || isRefused) return;
      await clock.sleep(EARLY_RESEND_MS);
    }
  };

  return {
    async send(events: FlowEvent[]): Promise<void> {
      await process.gate();
      if (isRefused) return;
      const written: FlowEvent[] = JSON.parse(JSON.stringify(events));
      const delivery = deliver(written);
      pending.push(delivery);
      if (!eager) await delivery;
    },
    /** Resolves when every report has its answer. */
    async sent(): Promise<void> {
      await Promise.all(pending);
    },
  };
}
