import { createLocalResults } from "../adapters/local-results.ts";
import { systemClock } from "../adapters/system-clock.ts";
import type { StartRequest } from "../engine/start.ts";
import { type ExecutionState, knownStep } from "../engine/state.ts";
import { createIds } from "../platform/ids.ts";
import type { ChildOutcome, ChildRequest } from "../ports/children.ts";
import type { Clock } from "../ports/clock.ts";
import type { CredentialSource } from "../ports/credentials.ts";
import type { WritableResultStore } from "../ports/result-store.ts";
import { type Diagnostic, formatDiagnostic } from "../schema/diagnostic.ts";
import { FlowError } from "../schema/errors.ts";
import type { FlowEvent } from "../schema/event.ts";
import type { JsonObject } from "../schema/json.ts";
import type { StoredResult } from "../schema/result.ts";
import type { Tool } from "../tools/tool.ts";
import type { TaskLine } from "../worker/deps.ts";
import { createFileCatalog, folderOf, type LocalPlaybook } from "./catalog.ts";
import { CAPACITY_DEFAULT, type LocalDeps, runExecution } from "./execution.ts";

/** What a local runtime is made of. Everything but the tools has a default that suits a real run. */
export interface LocalRuntimeOptions {
  /** Made by the caller, given the store that results go to; closed by it too. */
  tools: (results: WritableResultStore) => { get(kind: string): Promise<Tool> };
  credentials: CredentialSource;
  env?: JsonObject;
  capacity?: number;
  clock?: Clock;
  random?: () => number;
  observe?: (state: ExecutionState, events: readonly FlowEvent[]) => void;
  log?: (line: TaskLine) => void;
}

/** A request to run a playbook here. */
export interface LocalRequest {
  input: JsonObject;
  target?: string;
}

/** Runs playbooks in this process: no server, no database. */
export interface LocalRuntime {
  /** Finds, reads and compiles a playbook. Throws as the file catalog does. */
  load(target: string, folder: string): Promise<LocalPlaybook>;
  /** Runs one to its end; aborting the signal cancels it and its children. */
  run(playbook: LocalPlaybook, request: LocalRequest, signal: AbortSignal): Promise<ExecutionState>;
  results: WritableResultStore;
  /** Waits for children that nobody waits for, then frees what the runtime holds. */
  close(): Promise<void>;
}

/** Sub-playbooks within sub-playbooks after which a call is refused: a playbook that calls itself must end. */
export const CHILD_DEPTH_MAX = 64;

/** Builds a local runtime. */
export function createLocalRuntime(options: LocalRuntimeOptions): LocalRuntime {
  const clock = options.clock ?? systemClock;
  const results = createLocalResults();
  const catalog = createFileCatalog();
  const newId = createIds(() => clock.now());

  const deps: LocalDeps = {
    worker: "local",
    tools: options.tools(results),
    credentials: options.credentials,
    children: { run: (request, signal) => family.runChild(request, signal) },
    results,
    clock,
    random: options.random ?? Math.random,
    env: options.env ?? {},
    newId,
    capacity: options.capacity ?? CAPACITY_DEFAULT,
    observe: options.observe ?? (() => undefined),
    log: options.log ?? (() => undefined),
  };

  const execute = (playbook: LocalPlaybook, start: StartRequest, signal: AbortSignal) =>
    runExecution(deps, playbook, start, signal);
  const family = createFamily(execute, catalog.load, newId);

  return {
    load: (target, folder) => catalog.load(target, folder),
    run: (playbook, request, signal) => {
      const start = { executionId: newId(), catalogId: playbook.program.playbook.path, ...request };
      return family.runRoot(playbook, start, signal);
    },
    results,
    async close() {
      await family.idle();
      await results.close();
    },
  };
}

/** What an execution hands down to the children that it calls. */
interface Parent {
  /** Sub-playbooks above it. */
  depth: number;
  /** Aborted when the run as a whole is cancelled. */
  root: AbortSignal;
  /** Aborts the children that nobody waits for, when the execution is cancelled. */
  cancel: AbortController;
}

/** Runs executions, those that others call among them, and knows who called whom. */
function createFamily(
  execute: (playbook: LocalPlaybook, start: StartRequest, signal: AbortSignal) => Promise<ExecutionState>,
  load: LocalRuntime["load"],
  newId: () => string,
) {
  const parents = new Map<string, Parent>();
  const unattended = new Set<Promise<unknown>>();

  const runOne = async (playbook: LocalPlaybook, start: StartRequest, parent: Parent, signal: AbortSignal) => {
    parents.set(start.executionId, parent);
    try {
      const state = await execute(playbook, start, signal);
      if (state.status === "CANCELLED") parent.cancel.abort(new FlowError("CANCELLED", "The caller was cancelled"));
      return state;
    } finally {
      parents.delete(start.executionId);
    }
  };

  const runChild = async (request: ChildRequest, signal: AbortSignal): Promise<ChildOutcome> => {
    const caller = parents.get(request.parent.execution_id);
    const depth = (caller?.depth ?? 0) + 1;
    if (depth > CHILD_DEPTH_MAX) throw tooDeep();
    const target = request.path ?? request.catalogId ?? "";
    const playbook = await load(target, folderOf(request.parentFile)).catch(sayFirstError);
    checkReturnStep(playbook, request.returnStep);
    // The caller's time may have run out while the document was read.
    signal.throwIfAborted();
    const { path } = playbook.program.playbook;
    const executionId = newId();
    const start: StartRequest = { executionId, catalogId: path, input: request.input, parent: request.parent };
    const root = caller?.root ?? signal;
    // A child that nobody waits for outlives the task that started it, but not the cancellation of its caller.
    const lifetime = request.async && caller !== undefined ? AbortSignal.any([root, caller.cancel.signal]) : signal;
    const running = runOne(playbook, start, { depth, root, cancel: new AbortController() }, lifetime);
    if (!request.async) return outcomeOf(await running, request.returnStep);
    const attended = running.catch(() => undefined).finally(() => unattended.delete(attended));
    unattended.add(attended);
    return { executionId, path, status: "STARTED", result: null, error: null };
  };

  return {
    runChild,
    runRoot: (playbook: LocalPlaybook, start: StartRequest, signal: AbortSignal) =>
      runOne(playbook, start, { depth: 0, root: signal, cancel: new AbortController() }, signal),
    /** Resolves when the children that nobody waits for have ended, and those that they started. */
    async idle() {
      while (unattended.size > 0) await Promise.all(unattended);
    },
  };
}

function tooDeep(): FlowError {
  const message = `Playbooks call each other more than ${CHILD_DEPTH_MAX} deep; does one call itself?`;
  return new FlowError("INVALID_INPUT", message);
}

/** A task's error is one message: of an invalid document it says the first problem, not only how many there are. */
function sayFirstError(error: unknown): never {
  if (!(error instanceof FlowError) || error.code !== "INVALID_PLAYBOOK") throw error;
  const diagnostics = error.detail as unknown as Diagnostic[];
  const first = diagnostics.find(({ severity }) => severity === "error");
  const said = first === undefined ? "" : `; the first: ${formatDiagnostic(first)}`;
  throw new FlowError(error.code, `${error.message}${said}`, { cause: error });
}

function checkReturnStep(playbook: LocalPlaybook, name: string | undefined): void {
  const { steps, playbook: document } = playbook.program;
  if (name === undefined || steps.has(name)) return;
  const known = [...steps.keys()].join(", ");
  throw new FlowError("NOT_FOUND", `return_step: playbook '${document.path}' has no step '${name}'; it has: ${known}`);
}

function outcomeOf(state: ExecutionState, returnStep: string | undefined): ChildOutcome {
  const { executionId, path, error } = state;
  const status = state.status === "COMPLETED" || state.status === "CANCELLED" ? state.status : "FAILED";
  return { executionId, path, status, error, result: resultOf(state, returnStep) };
}

/** The result of an execution, or of one of its steps; null when there is none. */
export function resultOf(state: ExecutionState, step?: string): StoredResult | null {
  const name = step ?? state.resultStep;
  return name === null ? null : (knownStep(state, name)?.result ?? null);
}
