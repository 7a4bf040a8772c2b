import { nameScope } from "../../language/template/names.ts";
import type { TraceRef } from "../../schema/words/command.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { EventOf, ParentRef, RerunRef } from "../../schema/words/event.ts";
import { type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import type { EngineEnv } from "../env.ts";
import { checkInputs, type FindProblems } from "../program/check-inputs.ts";
import type { Program } from "../program/program.ts";
import { render } from "./scope.ts";

/** A request to run a playbook. */
export interface StartRequest {
  executionId: string;
  catalogId: string;
  /** Inputs of the request: they replace top-level keys of the workload. */
  input: JsonObject;
  parent?: ParentRef;
  /** Run no further than this step. */
  target?: string;
  /** The trace that it belongs to. The engine only passes it on. */
  trace?: TraceRef;
  /** It repeats another execution. */
  rerun?: RerunRef;
  /** The workload as it was recorded, with the edits of a rerun: its keys are not rendered again. */
  workload?: JsonObject;
  /** Whose key seals its secrets, if not that of the root of its tree. */
  sealedUnder?: string;
  /** Checks declared inputs. Absent: what was accepted before is started again, to compare it. */
  findProblems?: FindProblems;
}

/**
 * The first event of an execution. The workload's defaults are rendered once, in document order, against the request's inputs
 * and the keys before; a key that names itself sees the request's input only.
 *
 * Throws `FlowError` if a default cannot be rendered, the target is not a step, or the inputs are not what the playbook declares;
 * `ReferenceNeeded` as decisions do.
 */
export function startExecution(
  request: StartRequest,
  program: Program,
  env: EngineEnv,
): EventOf<"playbook.initialized"> {
  const { target, rerun, sealedUnder } = request;
  if (target !== undefined && !program.steps.has(target)) {
    const known = [...program.steps.keys()].join(", ");
    throw new FlowError("NOT_FOUND", `There is no step '${target}' to stop at; the steps are: ${known}`);
  }
  const workload = renderWorkload(request, program, env);
  checkDeclared(request, program, workload, env);
  const event: EventOf<"playbook.initialized"> = {
    type: "playbook.initialized",
    at: env.now,
    execution_id: request.executionId,
    catalog_id: request.catalogId,
    path: program.playbook.path,
    workload,
    input: request.input,
    ...(request.parent !== undefined && { parent: request.parent }),
    ...(target !== undefined && { target }),
    ...(request.trace !== undefined && { trace: request.trace }),
    ...(rerun !== undefined && { rerun }),
    ...(sealedUnder !== undefined && { sealed_under: sealedUnder }),
  };
  return env.sealing === undefined ? event : env.sealing.event(event);
}

/** The one place that every start passes, in both runtimes. */
function checkDeclared(request: StartRequest, { playbook }: Program, workload: JsonObject, env: EngineEnv): void {
  const { input, rerun, findProblems } = request;
  if (playbook.inputs === undefined || findProblems === undefined) return;
  const opened = env.sealing === undefined ? workload : env.sealing.open(workload);
  checkInputs(
    playbook,
    { input, workload: opened, ...(rerun !== undefined && { edited: rerun.input ?? [] }) },
    findProblems,
  );
}

function renderWorkload(request: StartRequest, program: Program, env: EngineEnv): JsonObject {
  const workload: JsonObject = {};
  /** The workload as the defaults see it: with sealed values opened. */
  const seen: JsonObject = {};
  const { open } = env.sealing ?? {};
  const scope = nameScope({
    executionId: request.executionId,
    catalogId: request.catalogId,
    ...(request.parent !== undefined && { parentExecutionId: request.parent.execution_id }),
    workload: seen,
    vars: {},
    spec: program.playbook.spec,
    steps: { get: () => undefined, names: () => [] },
    references: env.references,
    input: () => (open === undefined ? request.input : open(request.input)),
    env: env.env,
    reserved: {},
  });
  const recorded = request.workload ?? {};
  for (const [key, template] of program.workload) {
    const given = own(recorded, key) ?? own(request.input, key);
    const value = given === undefined ? render(template, scope, env) : given;
    setOwn(workload, key, value);
    setOwn(seen, key, open === undefined ? value : open(value));
  }
  for (const from of [request.input, recorded])
    for (const key of Object.keys(from)) setOwn(workload, key, own(from, key));
  return workload;
}
