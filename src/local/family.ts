import { checkReturnStep } from "../engine/decide/return-step.ts";
import type { StartRequest } from "../engine/decide/start.ts";
import { resultOf } from "../engine/state/results.ts";
import type { ExecutionState } from "../engine/state/state.ts";
import type { ChildOutcome, ChildRequest, ChildRunner } from "../ports/children.ts";
import { callRefusal } from "../schema/rules/access-rules.ts";
import { FlowError } from "../schema/words/errors.ts";
import type { ParentRef } from "../schema/words/event.ts";
import type { LocalPlaybook } from "./catalog.ts";

/** Sub-playbooks within sub-playbooks after which a call is refused: a playbook that calls itself must end. */
export const CHILD_DEPTH_MAX = 64;

/** What an execution hands down to the children that it calls. */
interface Parent {
  /** Sub-playbooks above it. */
  depth: number;
  /** Of its playbook. */
  path: string;
  /** The execution at the top of the tree, and its playbook. */
  top: Pick<StartRequest, "executionId" | "catalogId">;
  /** Aborted when the run as a whole is cancelled. */
  root: AbortSignal;
  /** Aborts the asynchronous children when the execution is cancelled. */
  cancel: AbortController;
}

/** What a family of executions is made of. */
export interface FamilyParts {
  /** Runs one execution to its end. */
  execute(playbook: LocalPlaybook, start: StartRequest, signal: AbortSignal): Promise<ExecutionState>;
  /** The playbook that a task calls. Throws `FlowError` if it is missing or invalid. */
  find(request: ChildRequest): Promise<LocalPlaybook>;
  newId(): string;
}

/** Executions and those that they call. */
export interface Family extends ChildRunner {
  /** Runs an execution that no other calls. */
  runRoot(playbook: LocalPlaybook, start: StartRequest, signal: AbortSignal): Promise<ExecutionState>;
  /** Resolves when the asynchronous children, and their children, have ended. */
  idle(): Promise<void>;
}

/** Runs executions, those that others call among them, and knows who called whom. */
export function createFamily({ execute, find, newId }: FamilyParts): Family {
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
    const playbook = await find(request);
    checkReturnStep(playbook.program, request.returnStep);
    // The caller's time may have run out while the document was read.
    signal.throwIfAborted();
    const { path } = playbook.program.playbook;
    const why = caller === undefined ? undefined : callRefusal(caller.path, path);
    if (why !== undefined) throw new FlowError("SYSTEM_PLAYBOOK", `${why}. Start it by itself`, { detail: { path } });
    const executionId = newId();
    const top = caller?.top ?? { executionId: request.parent.execution_id, catalogId: path };
    const parent = { ...request.parent, ...rootOf(request.parent, top) };
    const start: StartRequest = { executionId, catalogId: path, input: request.input, parent };
    const root = caller?.root ?? signal;
    // An asynchronous child outlives the task that started it, but not the cancellation of its caller.
    const lifetime = request.async && caller !== undefined ? AbortSignal.any([root, caller.cancel.signal]) : signal;
    const running = runOne(playbook, start, { depth, path, top, root, cancel: new AbortController() }, lifetime);
    if (!request.async) return outcomeOf(await running, request.returnStep);
    const attended = running.catch(() => undefined).finally(() => unattended.delete(attended));
    unattended.add(attended);
    return { executionId, path, status: "STARTED", result: null, error: null };
  };

  return {
    run: runChild,
    runRoot: (playbook, start, signal) =>
      runOne(
        playbook,
        start,
        { top: start, depth: 0, path: playbook.program.playbook.path, root: signal, cancel: new AbortController() },
        signal,
      ),
    async idle() {
      while (unattended.size > 0) await Promise.all(unattended);
    },
  };
}

/** The root of the tree; left out if the parent is the root. */
function rootOf({ execution_id }: ParentRef, { executionId, catalogId }: Parent["top"]): Partial<ParentRef> {
  return { ...(executionId !== execution_id && { root_execution_id: executionId }), root_catalog_id: catalogId };
}

function tooDeep(): FlowError {
  const message = `Playbooks call each other more than ${CHILD_DEPTH_MAX} deep; does one call itself?`;
  return new FlowError("INVALID_INPUT", message);
}

function outcomeOf(state: ExecutionState, returnStep: string | undefined): ChildOutcome {
  const { executionId, path, error } = state;
  const status = state.status === "COMPLETED" || state.status === "CANCELLED" ? state.status : "FAILED";
  return { executionId, path, status, error, result: resultOf(state, returnStep) };
}
