import { isTerminal } from "../../engine/state/state.ts";
import type { Database } from "../../repositories/database/database.ts";
import { findExecution } from "../../repositories/executions/execution-list.ts";
import type { ExecutionStateName } from "../../schema/rules/execution-filter.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { unknownExecution } from "../errors.ts";
import type { Orchestrator } from "../orchestration/orchestrator.ts";
import { eachOpenBelow } from "./descendants.ts";

/** What to pause or resume, why, and who asked for it. */
export interface PauseRequest {
  reason?: string;
  /** As the audit log names the caller. */
  by?: string;
  /** Also the executions that it has called, and those called by them. */
  cascade: boolean;
}

/** What became of it. */
export interface Paused {
  status: ExecutionStateName;
  /** It was not so before. */
  isChanged: boolean;
  /** Executions below it that were paused or resumed with it. */
  children: number;
}

/** Pauses executions and resumes them (control, section 1, rules 1 to 3). */
export interface Pausing {
  /**
   * Nothing further is issued or claimed in it; what workers have goes on and is recorded. Rejects with `FlowError` NOT_FOUND,
   * already_terminal, UNAVAILABLE.
   */
  pause(executionId: string, request: PauseRequest): Promise<Paused>;
  /** It goes on with everything that came due meanwhile. Rejects as `pause` does. */
  resume(executionId: string, request: PauseRequest): Promise<Paused>;
}

/** Both may be repeated: children that a server which died half-way has left out are paused, or resumed, by the next call. */
export function createPausing(deps: {
  database: Database;
  orchestrator: Pick<Orchestrator, "inject">;
  now(): number;
}): Pausing {
  const { database, orchestrator, now } = deps;
  const steer = async (type: "execution.paused" | "execution.resumed", executionId: string, request: PauseRequest) => {
    const { reason, by, cascade } = request;
    const told = { at: now(), ...defined({ reason, by }) };
    const event = type === "execution.paused" ? { type, ...told, ...(cascade && { cascade }) } : { type, ...told };
    return (await orchestrator.inject(executionId, event)) === "accepted";
  };
  const steerAll = async (
    type: "execution.paused" | "execution.resumed",
    executionId: string,
    request: PauseRequest,
  ): Promise<Paused> => {
    const isChanged = await steer(type, executionId, request);
    const row = await findExecution(database, executionId);
    if (row === undefined) throw unknownExecution(executionId);
    const { status } = row;
    if (!isChanged && isTerminal(status)) throw ended(executionId, status, type);
    if (!request.cascade) return { status, isChanged, children: 0 };
    const children = await eachOpenBelow(database, executionId, (child) => steer(type, child, request));
    return { status, isChanged, children };
  };
  return {
    pause: (executionId, request) => steerAll("execution.paused", executionId, request),
    resume: (executionId, request) => steerAll("execution.resumed", executionId, request),
  };
}

function ended(executionId: string, status: ExecutionStateName, type: string): FlowError {
  const what = type === "execution.paused" ? "paused" : "resumed";
  return new FlowError("already_terminal", `Execution ${executionId} was not ${what}: it has ended (${status})`);
}
