import { EventEmitter, once } from "node:events";
import type { TestContext } from "node:test";
import { createFileCredentials } from "../../src/adapters/file-credentials.ts";
import { type ExecutionState, isTerminal } from "../../src/engine/state/state.ts";
import { createLocalRuntime } from "../../src/local/runtime.ts";
import { type EventRecord, toRecord } from "../../src/schema/rules/event-record.ts";
import { FlowError } from "../../src/schema/words/errors.ts";
import type { Json, JsonObject } from "../../src/schema/words/json.ts";
import { createToolRegistry } from "../../src/tools/registry.ts";
import type { PlayedEntry } from "./played-catalog.ts";

/** Executions of a playing server: run by the local runtime, told as a server tells them. */
export interface PlayedExecutions {
  /** The log of every execution, in the order of their starts. */
  logs: Map<string, EventRecord[]>;
  states: Map<string, ExecutionState>;
  /** Resolves when something has happened to any of them. */
  moved(): Promise<unknown>;
  /** Gives the id of the execution that has begun. */
  start(entry: PlayedEntry, body: JsonObject): Promise<string>;
  /** Gives the status after it. */
  cancel(id: string, reason: string): Promise<string>;
  result(ref: string): Promise<Json>;
  /** Throws `FlowError` NOT_FOUND. */
  log(id: string): EventRecord[];
}

/** No executions yet. The folder has the documents, by their catalog ids. */
export function createPlayedExecutions(t: TestContext, folder: string): PlayedExecutions {
  const logs = new Map<string, EventRecord[]>();
  const states = new Map<string, ExecutionState>();
  const stops = new Map<string, AbortController>();
  const news = new EventEmitter().setMaxListeners(0);
  const moved = () => once(news, "moved");
  let eventId = 100;
  const tools = createToolRegistry({ allowPrivate: "all", store: { load: () => Promise.reject(new Error("none")) } });
  const runtime = createLocalRuntime({
    tools: () => tools,
    credentials: createFileCredentials(undefined, {}),
    observe(state, events) {
      const { executionId, path } = state;
      const log = logs.get(executionId) ?? [];
      states.set(executionId, state);
      logs.set(executionId, log);
      for (const event of events) {
        eventId += 1;
        log.push(toRecord(event, { eventId, executionId, catalogId: "1", path }));
      }
      news.emit("moved");
    },
  });
  t.after(async () => {
    for (const stop of stops.values()) stop.abort();
    await runtime.close();
    await tools.close();
  });
  const log = (id: string) => {
    const found = logs.get(id);
    if (found === undefined) throw new FlowError("NOT_FOUND", `There is no execution ${id}`);
    return found;
  };
  return {
    ...{ logs, states, moved, log },
    async start({ catalog_id }, { workload, target }) {
      const playbook = await runtime.load(`${catalog_id}.yaml`, folder);
      const known = new Set(logs.keys());
      const stop = new AbortController();
      const request = { input: (workload ?? {}) as JsonObject, ...(typeof target === "string" && { target }) };
      void runtime.run(playbook, request, stop.signal);
      for (;;) {
        const id = [...logs.keys()].find((candidate) => !known.has(candidate));
        if (id !== undefined) {
          stops.set(id, stop);
          return id;
        }
        await moved();
      }
    },
    async cancel(id, reason) {
      stops.get(id)?.abort(new FlowError("CANCELLED", reason));
      const status = () => states.get(id)?.status ?? "CANCELLED";
      while (!isTerminal(status())) await moved();
      return status();
    },
    result: (ref) => runtime.results.load(ref),
  };
}

/** An execution as it stands in a list. */
export function itemOf(state: ExecutionState): JsonObject {
  const { executionId, path, status, startedAt, endedAt, error, parent } = state;
  const progress = status === "RUNNING" ? 50 : 100;
  return {
    ...{ execution_id: executionId, catalog_id: "1", path, version: 1, status, progress },
    parent_execution_id: parent?.execution_id ?? null,
    ...{ started_at: timeOf(startedAt), ended_at: timeOf(endedAt) },
    ...{ duration_ms: endedAt === null ? null : endedAt - startedAt, result: null, error },
  };
}

/** An execution with its steps and open commands. */
export function detailOf(state: ExecutionState): JsonObject {
  const steps = Object.entries(state.steps).map(([name, step]) => ({
    ...{ name, status: step.status, attempts: step.attempts, runs: step.runs },
    ...{ started_at: timeOf(step.startedAt), ended_at: timeOf(step.endedAt), duration_ms: null },
    ...(step.loop !== null && { loop: { ...step.loop } }),
    ...(step.error !== null && { error: step.error }),
  }));
  const commands = Object.entries(state.commands).map(([command_id, { step, attempt, worker, startedAt }]) => ({
    ...{ command_id, step, attempt, worker, claimed_at: timeOf(startedAt) },
  }));
  return { ...itemOf(state), workload: state.workload, steps, commands };
}

function timeOf(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
