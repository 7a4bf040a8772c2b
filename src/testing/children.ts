import type { LocalPlaybook } from "../local/catalog.ts";
import { type LocalDeps, runExecution } from "../local/execution.ts";
import { CHILD_DEPTH_MAX, resultOf } from "../local/runtime.ts";
import type { ChildRunner } from "../ports/children.ts";
import { FlowError } from "../schema/errors.ts";
import type { FindChild } from "./names.ts";

/** What sub-playbooks of a test need besides the parts of every run. */
export interface ChildSurroundings {
  findChild: FindChild;
  /** The playbook with the mocks of the names that begin with `prefix`. */
  mocked(playbook: LocalPlaybook, prefix: string): LocalPlaybook;
  /** Prefix of names by execution; written here. */
  prefixes: Map<string, string>;
  count(name: string): void;
  /** Of the test: a child that nobody waits for outlives the task that started it. */
  signal: AbortSignal;
}

/** Runs the sub-playbooks of a test as the local runtime does, with mocks by the path of calling steps. */
export function childRunner(deps: LocalDeps, around: ChildSurroundings): ChildRunner & { settled(): Promise<void> } {
  const unattended = new Set<Promise<unknown>>();
  return {
    async run(request, signal) {
      const step = (around.prefixes.get(request.parent.execution_id) ?? "") + request.parent.step;
      around.count(step);
      if (step.split("/").length > CHILD_DEPTH_MAX) {
        throw new FlowError(
          "INVALID_INPUT",
          `Playbooks call each other more than ${CHILD_DEPTH_MAX} deep; does one call itself?`,
        );
      }
      const playbook = await around.findChild(request.path ?? request.catalogId ?? "", request.parentFile);
      checkReturnStep(playbook, request.returnStep);
      const { path } = playbook.program.playbook;
      const executionId = deps.newId();
      around.prefixes.set(executionId, `${step}/`);
      const start = { executionId, catalogId: path, input: request.input, parent: request.parent };
      const running = runExecution(
        deps,
        around.mocked(playbook, `${step}/`),
        start,
        request.async ? around.signal : signal,
      );
      if (request.async) {
        const attended = running.catch(() => undefined).finally(() => unattended.delete(attended));
        unattended.add(attended);
        return { executionId, path, status: "STARTED", result: null, error: null };
      }
      const state = await running;
      const status = state.status === "COMPLETED" || state.status === "CANCELLED" ? state.status : "FAILED";
      return { executionId, path, status, error: state.error, result: resultOf(state, request.returnStep) };
    },
    async settled() {
      await Promise.all(unattended);
    },
  };
}

function checkReturnStep({ program }: LocalPlaybook, name: string | undefined): void {
  if (name === undefined || program.steps.has(name)) return;
  const known = [...program.steps.keys()].join(", ");
  throw new FlowError(
    "NOT_FOUND",
    `return_step: playbook '${program.playbook.path}' has no step '${name}'; it has: ${known}`,
  );
}
