import { setMaxListeners } from "node:events";
import { createServerChildren } from "../../src/adapters/server/children.ts";
import { createServerResults } from "../../src/adapters/server/results.ts";
import { createServerWork } from "../../src/adapters/server/work.ts";
import type { ClaimedWork } from "../../src/ports/work-server.ts";
import { isJsonObject } from "../../src/schema/words/json.ts";
import { createWorker as createClaimingWorker, type Worker } from "../../src/worker/loop/worker.ts";
import { type Answering, connect } from "./network.ts";
import { programOf } from "./playbooks.ts";
import { type Process, startProcess, type World } from "./process.ts";
import { type Script, scriptedTool } from "./tools.ts";

/** What a virtual worker is made of. */
export interface WorkerParts extends World {
  name: string;
  /** Commands at a time. */
  capacity: number;
  servers: readonly Answering[];
  script: Script;
  /** Something was thrown where nothing may be: the run is a failure. */
  broken(error: unknown): void;
}

/** A virtual worker: the real `createWorker` in processes that crash and are started again. */
export interface VirtualWorker {
  /** Commands that it runs, as it knows. */
  running(): number;
  jump(ms: number): void;
}

const HEARTBEAT_MS = 4_000;
/** Longer than a lease, and shorter than the minute that a cursor's claim may take before it counts as failed. */
const FREEZE_MS = [5_000, 50_000] as const;

/** Makes a worker and starts its first process. */
export function createWorker(parts: WorkerParts): VirtualWorker {
  const { clock, random } = parts;
  let offsetMs = 0;
  let lives = 0;
  let running = new Map<number, ClaimedWork>();

  const begin = () => {
    lives += 1;
    const process = startProcess(parts, {
      crash: "crash",
      freeze: "freeze",
      freezeMs: FREEZE_MS,
      offset: () => offsetMs,
    });
    running = new Map();
    process.onDeath(() => {
      running = new Map();
      clock.after(random.between(100, 10_000), begin);
    });
    live(parts, process, running, lives);
  };
  begin();

  return {
    running: () => running.size,
    jump: (ms) => {
      offsetMs += ms;
    },
  };
}

/** One life: registers, claims, and beats, until its process dies. */
function live(parts: WorkerParts, process: Process, running: Map<number, ClaimedWork>, serial: number): void {
  const { name, random, script, servers, broken } = parts;
  const connection = connect(parts, process, servers);
  const retry = { clock: process.clock, random: random.next, connection };
  const children = createServerChildren({ ...retry, calls: connection, connections: 4 });
  const claimOf = (commandId: string) => {
    const found = [...running.values()].findLast(({ command }) => command.command_id === commandId);
    return { attempt: found?.attempt ?? 0, limit: found?.command.loop?.max_in_flight ?? 1 };
  };
  const tool = scriptedTool(script, process, claimOf);
  const post = async (path: string, body: object) => {
    const { signal } = new AbortController();
    return await connection.call({ method: "POST", path, body: JSON.stringify(body), timeoutMs: 0, signal });
  };
  const register = async () => {
    for (;;) {
      const reply = await post("/api/worker/pool/register", { name }).catch(() => undefined);
      if (reply?.status === 200) return;
      await process.clock.sleep(500);
    }
  };
  const beat = async () => {
    const list = [...running.values()].map(({ command, attempt }) => ({ command_id: command.command_id, attempt }));
    const reply = await post("/api/worker/pool/heartbeat", { name, running: list }).catch(() => undefined);
    if (reply?.status === 404) await register();
    if (reply?.status !== 200 || !isJsonObject(reply.body)) return;
    const attempts = new Map(list.map(({ command_id, attempt }) => [command_id, attempt]));
    for (const id of reply.body["cancel"] as string[]) work.cancelled(id);
    for (const id of reply.body["lost"] as string[]) work.lost(id, attempts.get(id) ?? 0);
  };
  let rows = 0;
  let keys = 0;
  const work: Worker = createClaimingWorker({
    server: createServerWork(connection, { name, kinds: undefined, labels: {} }),
    programs: async (id) => programOf(id),
    deps: {
      worker: name,
      tools: { get: () => Promise.resolve(tool) },
      credentials: { find: () => Promise.resolve(undefined) },
      sealers: undefined,
      clock: process.clock,
      random: random.next,
      env: {},
      log: () => undefined,
    },
    childrenOf: (claim) => children.of(claim),
    resultsOf: (claim) => createServerResults(retry, claim, name),
    capacity: parts.capacity,
    newAbort: () => {
      const controller = new AbortController();
      setMaxListeners(0, controller.signal);
      return controller;
    },
    newKey: () => {
      keys += 1;
      return `${name}-${serial}-${keys}`;
    },
    runningTable: {
      add(claimed) {
        rows += 1;
        running.set(rows, claimed);
        return rows;
      },
      remove: (row) => void running.delete(row),
    },
    beat: () => void beat(),
    register: () => void register(),
    emit(event) {
      if (event.type === "fault") broken(event.error);
      if (event.type === "report.invalid") broken(new Error(event.message));
    },
  });
  process.repeat(HEARTBEAT_MS, () => void beat());
  void register().then(() => work.start());
}
