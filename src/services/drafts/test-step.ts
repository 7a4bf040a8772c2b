import type { Program } from "../../engine/program/program.ts";
import { knownStep } from "../../engine/state/state.ts";
import type { Database } from "../../repositories/database/database.ts";
import { findExecutions } from "../../repositories/executions/execution-list.ts";
import { matchingExecutions } from "../../repositories/executions/matching-executions.ts";
import { hasRunStep } from "../../repositories/executions/step-runs.ts";
import type { AuditEntry } from "../../schema/words/audit-entry.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject } from "../../schema/words/json.ts";
import type { Documents } from "../catalog/documents.ts";
import { beginRerun, factsOf, findKnown, type Rerun } from "../executions/rerun-execution.ts";
import { type OpenedOriginal, type OriginalDeps, openOriginal, prepareRerun } from "../executions/rerun-original.ts";
import type { ExecutionRequest, Started } from "../executions/start-execution.ts";
import { compileText } from "../orchestration/memory/program-cache.ts";
import { type Draft, keepingDraft, readDraft } from "./start-draft.ts";

/** A step of a text to run alone, with what it had in an execution. */
export interface StepTestRequest
  extends Draft,
    Pick<ExecutionRequest, "may" | "log" | "startedBy" | "idempotency" | "bytes" | "traceparent"> {
  step: string;
  /** An execution of the text's path that has ended. Default: the newest in which the step ran. */
  executionId?: string;
  /** Whether the caller may run again what is of a path; refuses by throwing. */
  permitRerun(path: string): Promise<void>;
  /** The row of the audit log, which is written with the new execution: `of` is the one whose records it takes. */
  row(of: string, executionId: string): AuditEntry;
  /** As the audit log names the caller. */
  by?: string;
  dryRun: boolean;
}

/** A test of a step, begun or only planned. */
export interface StepTest extends Rerun {
  /** Whose records it takes. */
  of: string;
}

interface StepTestDeps extends Omit<OriginalDeps, "facts"> {
  database: Database;
  documents: Pick<Documents, "read" | "registered">;
  start(request: ExecutionRequest): Promise<Started>;
  cancel(executionId: string, reason: string): Promise<unknown>;
}

/**
 * Runs one step of a text that is not registered, with the inputs that it had in an execution of the same path: a rerun of that one, from
 * the step and no further, with the text as its version. A loop runs all of its iterations. Rejects with `FlowError` INVALID_INPUT for a
 * step that the text does not have, for an execution of another path, and where inputs cannot be taken; NOT_FOUND if the step has not run
 * in any; not_terminal, RESULT_NOT_REUSABLE, and with the errors of drafts and reruns.
 */
export function testSteps(given: StepTestDeps): (request: StepTestRequest) => Promise<StepTest> {
  const deps = { ...given, facts: factsOf(given.database) };
  const { database, documents } = deps;
  return async (request) => {
    const { step, dryRun } = request;
    const draft = await readDraft(documents, request, "The step was not run");
    const known = dryRun ? undefined : await findKnown(database, request);
    if (known !== undefined) return { ...known, of: known.rerunOf ?? "" };
    const program = await compileText(documents, draft.content, `${draft.path}@draft`);
    checkStep(program, step);
    const original = await recordedRun(deps, draft.path, request);
    const of = original.state.executionId;
    const choice = { from: [step], only: true, edits: NO_EDITS, reuseIterations: false, program };
    const prepared = await prepareRerun(deps, original, choice).catch((error: unknown) => {
      throw explained(error, step, of);
    });
    const { reused, willRun, steps } = prepared;
    const told = { of, path: draft.path, version: 0, reused, willRun, steps };
    if (dryRun) return { ...told, warnings: [], duplicate: false };
    const { permit, log, row } = request;
    const started = await keepingDraft(database, draft, (catalogId) =>
      beginRerun(
        deps,
        { original, prepared, entry: { catalogId, version: 0, kind: draft.kind }, program, children: [] },
        {
          ...request,
          ...{ permit, only: true, edits: NO_EDITS, reuseChildren: {} },
          ...(log !== undefined && {
            log: { ...log, rows: (executionId) => [...log.rows(executionId), row(of, executionId)] },
          }),
        },
      ),
    );
    return { ...told, executionId: started.executionId, warnings: started.warnings, duplicate: started.duplicate };
  };
}

const NO_EDITS = { input: {}, variables: {}, stepInput: {} };

function checkStep({ playbook, steps }: Program, step: string): void {
  if (steps.has(step)) return;
  const names = [...steps.keys()].join(", ");
  throw new FlowError(
    "INVALID_INPUT",
    `The text of '${playbook.path}' has no step '${step}'; its steps are: ${names}`,
    {
      detail: { unknown_steps: [step] },
    },
  );
}

/** The execution in which the step ran whose inputs are asked for. */
async function recordedRun(
  deps: StepTestDeps & OriginalDeps,
  path: string,
  { step, executionId, permitRerun }: StepTestRequest,
): Promise<OpenedOriginal> {
  const asked = executionId ?? (await newestRun(deps.database, path, step));
  if (asked === undefined) {
    const message = `Step '${step}' has not run in any of the last ${LOOKED_AT} executions of '${path}' that have ended`;
    throw new FlowError("NOT_FOUND", `${message}. Run the draft up to it first, with the target '${step}'`, {
      detail: { step },
    });
  }
  const original = await openRun(deps, asked, path, permitRerun);
  const taken = knownStep(original.state, step)?.reusedFrom;
  // It ran in another execution, which alone has what it began with.
  return taken === undefined ? original : await openRun(deps, taken.execution_id, path, permitRerun);
}

async function openRun(
  deps: OriginalDeps,
  executionId: string,
  path: string,
  permitRerun: StepTestRequest["permitRerun"],
): Promise<OpenedOriginal> {
  const original = await openOriginal(deps, executionId, permitRerun);
  const { stored } = original;
  if (stored.path === path) return original;
  const message = `Execution ${executionId} is of '${stored.path}', and the text is of '${path}'`;
  throw new FlowError("INVALID_INPUT", `${message}. Name an execution of '${path}', or none for its newest`, {
    detail: { execution_id: executionId, path: stored.path },
  });
}

/** Executions among which one is looked for that has run a step. */
const LOOKED_AT = 20;

async function newestRun(database: Database, path: string, step: string): Promise<string | undefined> {
  const filter = { path, status: ["COMPLETED", "FAILED", "CANCELLED"] as const };
  const { items } = await matchingExecutions(database, { ...filter, status: [...filter.status] }, { limit: LOOKED_AT });
  for (const { executionId, version, rerunOf } of await findExecutions(database, items)) {
    // Earlier tests took their inputs from others.
    if (version === 0 && rerunOf !== null) continue;
    if (await hasRunStep(database, executionId, step)) return executionId;
  }
  return undefined;
}

/** Why the records of an execution do not fit the text, with what to do. */
function explained(error: unknown, step: string, of: string): unknown {
  if (!(error instanceof FlowError)) return error;
  const { code, detail = null } = error;
  const has = (name: string) => isJsonObject(detail) && Object.hasOwn(detail, name);
  const upTo = `run the draft up to '${step}', as its target`;
  const again = (why: string, next: string) => new FlowError(code, `The step was not run: ${why}. ${next}`, { detail });
  if (has("unreached_steps"))
    return again(
      `execution ${of} never reached '${step}', so what it would begin with is not known`,
      `Name an execution that did, or ${upTo}`,
    );
  if (isJsonObject(detail) && Array.isArray(detail["unmatched_steps"])) {
    const names = detail["unmatched_steps"].map((name) => `'${String(name)}'`).join(", ");
    const why = `execution ${of} has results of ${names}, which the text does not have, or has as steps of another kind`;
    return again(why, `Name an execution of a version that has them so, or ${upTo}`);
  }
  if (code === "RESULT_NOT_REUSABLE")
    return again(
      `a result of execution ${of} that '${step}' needs has expired or was deleted`,
      `Name a younger execution, or ${upTo}`,
    );
  return error;
}
