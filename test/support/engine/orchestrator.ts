import { systemClock } from "../../../src/adapters/system-clock.ts";
import { resultOf } from "../../../src/engine/state/results.ts";
import type { Json } from "../../../src/schema/words/json.ts";
import { createExecutionReader, type ExecutionView } from "../../../src/services/executions/execution-reader.ts";
import { createOrchestrator } from "../../../src/services/orchestration/create-orchestrator.ts";
import { createProgramCache } from "../../../src/services/orchestration/memory/program-cache.ts";
import type { Orchestrator, OrchestratorDeps } from "../../../src/services/orchestration/orchestrator.ts";
import { documents } from "./documents.ts";
import { createMemoryStore, DuplicateKey, type MemoryStore } from "./memory-store.ts";

/** An orchestrator over a store in memory. */
export interface TestOrchestrator {
  orchestrator: Orchestrator;
  /** An execution as it was committed. */
  view(executionId: string): Promise<ExecutionView | undefined>;
  store: MemoryStore;
  faults: unknown[];
  payloads: Map<string, string>;
  /** Adds a playbook, and starts it. */
  start(content: string, input?: Record<string, Json>): Promise<string>;
  /** A second service on the same store, as another server has it. */
  another(more?: Partial<OrchestratorDeps>): Orchestrator;
}

/** Builds one, with the system's clock unless told otherwise. */
export function openOrchestrator(
  more: Partial<OrchestratorDeps> = {},
  store = createMemoryStore(Date.now),
  limits: Partial<OrchestratorDeps["limits"]> = {},
): TestOrchestrator {
  const entries = new Map<string, { path: string; version: number; content: string }>();
  const faults: unknown[] = [];
  const payloads = new Map<string, string>();
  const deps: OrchestratorDeps = {
    store,
    programs: createProgramCache(async (id) => entries.get(id), documents),
    results: {
      load: async (ref) => JSON.parse(payloads.get(ref) ?? "null") as Json,
      save: async (ref, json) => void payloads.set(ref, json),
    },
    clock: systemClock,
    defer: setImmediate,
    env: {},
    limits: {
      leaseMs: 120_000,
      lostClaims: 3,
      ackMs: 10_000,
      queueMax: 1_024,
      processingMs: 15_000,
      processors: 1,
      ...limits,
    },
    resultOf: (state) => resultOf(state)?.value ?? null,
    isRetryable: () => false,
    isDuplicateKey: (error) => error instanceof DuplicateKey,
    unavailable: () => undefined,
    observer: {
      committed: () => undefined,
      batchAccepted: () => undefined,
      ackTimedOut: () => undefined,
      firstClaim: () => undefined,
      claimed: () => undefined,
      returned: () => undefined,
      fault: (error) => void faults.push(error),
    },
    ...more,
  };
  const orchestrator = createOrchestrator(deps);
  const reader = createExecutionReader({ store, programs: deps.programs, now: Date.now });
  return {
    orchestrator,
    view: (executionId) => reader.read(executionId, store.executions.get(executionId)?.lastEventId ?? 0),
    store,
    faults,
    payloads,
    another: (own = {}) => createOrchestrator({ ...deps, ...own }),
    async start(content, input = {}) {
      const catalogId = String(entries.size + 1);
      const path = /path: *"?([\w/-]+)/.exec(content)?.[1] ?? "p";
      entries.set(catalogId, { path, version: 1, content });
      const { executionId } = await orchestrator.start({ entry: { catalogId, path, version: 1 }, input });
      return executionId;
    },
  };
}
