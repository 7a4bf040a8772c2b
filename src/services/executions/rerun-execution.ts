import type { Program } from "../../engine/program/program.ts";
import type { RerunEdits } from "../../engine/rerun/restore-state.ts";
import type { StoredExecution } from "../../ports/execution-store.ts";
import type { Database } from "../../repositories/database/database.ts";
import { isBeingDeleted } from "../../repositories/executions/deleted-executions.ts";
import { findOwnersWithin, findRerun, listLabels } from "../../repositories/executions/reruns.ts";
import {
  type Executable,
  findExecutableById,
  findExecutables,
  findExecutableVersion,
} from "../../repositories/orchestration/find-startable.ts";
import { findStartByKey } from "../../repositories/orchestration/load-execution.ts";
import { findGone } from "../../repositories/results/gone.ts";
import type { Origin } from "../../schema/rules/origin.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { RerunRef } from "../../schema/words/event.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { otherBody } from "../errors.ts";
import { sealingRoot } from "../orchestration/memory/load-execution.ts";
import type { RerunInput } from "../orchestration/orchestrator.ts";
import { checkChildren } from "./rerun-children.ts";
import {
  checkWhole,
  type OpenedOriginal,
  type OriginalDeps,
  type OriginalFacts,
  openOriginal,
  type PreparedRerun,
  prepareRerun,
} from "./rerun-original.ts";
import type { ExecutionRequest, Started } from "./start-execution.ts";

/** What to run again, and how. */
export interface RerunRequest
  extends Pick<ExecutionRequest, "permit" | "may" | "log" | "startedBy" | "idempotency" | "bytes" | "traceparent"> {
  /** What asked for it. Default: it counts as started by what it repeats. */
  origin?: Origin;
  /** Default: `failed` for an execution that failed or was cancelled, else `start`. */
  from?: readonly string[] | "failed" | "start";
  only: boolean;
  edits: RerunEdits;
  version: "same" | "latest" | number;
  reuseIterations: boolean;
  reuseChildren: Readonly<Record<string, string>>;
  /** Throws `FlowError` FORBIDDEN if the caller may not see executions of a path: their results are taken. */
  permitView(path: string): Promise<void>;
  reason?: string;
  /** As the audit log names the caller. */
  by?: string;
  dryRun: boolean;
}

/** A rerun, begun or only planned. */
export interface Rerun {
  /** Undefined: it was only planned. */
  executionId?: string;
  path: string;
  version: number;
  reused: number;
  willRun: string[];
  /** The plan; absent for a rerun that an earlier call with the same key has begun. */
  steps?: PreparedRerun["steps"];
  warnings: string[];
  duplicate: boolean;
}

interface RerunDeps extends Omit<OriginalDeps, "facts"> {
  database: Database;
  start(request: ExecutionRequest): Promise<Started>;
  cancel(executionId: string, reason: string): Promise<unknown>;
}

/**
 * Begins a new execution that repeats another one from some of its steps on, or says what it would do (control, section 1, rules 5 to 13).
 * Rejects with `FlowError` NOT_FOUND, not_terminal, nothing_failed, RESULT_NOT_REUSABLE, INVALID_INPUT for what it names and there is
 * not, and with the errors of a start.
 */
export function rerunExecutions(given: RerunDeps): (executionId: string, request: RerunRequest) => Promise<Rerun> {
  const deps = { ...given, facts: factsOf(given.database) };
  return async (executionId, request) => {
    const known = request.dryRun ? undefined : await findKnown(deps.database, request);
    if (known !== undefined) return known;
    const original = await openOriginal(deps, executionId, request.permit);
    const { state, stored } = original;
    const entry = await entryOf(deps.database, stored, request);
    const { program } = await deps.programs(entry.catalogId);
    const { edits } = request;
    const prepared = await prepareRerun(deps, original, { ...request, from: fromOf(stored.status, request), program });
    const { reused, willRun, steps } = prepared;
    const children = await checkChildren(deps.database, {
      ...{ children: request.reuseChildren, permitView: request.permitView, program, original: state, prepared },
      isEdited: [edits.input, edits.variables, edits.stepInput].some((one) => Object.keys(one).length > 0),
    });
    const told = { path: entry.path, version: entry.version, reused, willRun, steps };
    if (request.dryRun) return { ...told, warnings: [], duplicate: false };
    const started = await beginRerun(deps, { original, prepared, entry, program, children }, request);
    return { ...told, executionId: started.executionId, warnings: started.warnings, duplicate: started.duplicate };
  };
}

/** A rerun whose plan is made. */
export interface PlannedRerun {
  original: OpenedOriginal;
  prepared: PreparedRerun;
  /** What it runs. */
  entry: Pick<Executable, "catalogId" | "version" | "kind">;
  program: Program;
  /** Executions whose results it takes in place of calls. */
  children: readonly string[];
}

/** Starts what was planned, and sees to it that no original was deleted meanwhile. */
export async function beginRerun(
  deps: Pick<RerunDeps, "database" | "start" | "cancel"> & Pick<OriginalDeps, "facts">,
  { original, prepared, entry, program, children }: PlannedRerun,
  request: Omit<RerunRequest, "from" | "version" | "reuseIterations" | "permitView" | "dryRun">,
): Promise<Started> {
  const { executionId, input, target } = original.state;
  const { permit, may, log, startedBy, idempotency, bytes, traceparent } = request;
  const started = await deps.start({
    catalogId: entry.catalogId,
    ...(entry.kind === "agent" && { resourceKind: "agent" as const }),
    input: { ...input, ...request.edits.input },
    labels: await keptLabels(deps.database, executionId, program),
    ...(target !== null && program.steps.has(target) && { target }),
    origin: request.origin ?? { kind: "rerun", id: executionId },
    ...defined({ permit, may, log, startedBy, idempotency, bytes, traceparent }),
    rerun: rerunInput(original, prepared, request, { version: entry.version, children }),
  });
  if (!started.duplicate) await followDeletion(deps, started.executionId, [executionId, prepared.sourceId]);
  return started;
}

/** What reruns read beside logs, from a database. */
export function factsOf(database: Database): OriginalFacts {
  return {
    isBeingDeleted: (executionId) => isBeingDeleted(database, executionId),
    findGone: (asked) => findGone(database, asked),
    findOwnersWithin: (executionId, owners) => findOwnersWithin(database, executionId, owners),
  };
}

/** Where it goes on, with the default of an execution that ended so. */
export function fromOf(
  status: StoredExecution["status"],
  { from }: Pick<RerunRequest, "from">,
): NonNullable<RerunRequest["from"]> {
  return from ?? (status === "COMPLETED" ? "start" : "failed");
}

/** What a start takes from a rerun that was prepared. `children`: executions whose results it takes in place of calls. */
export function rerunInput(
  { state, stored }: OpenedOriginal,
  prepared: PreparedRerun,
  request: Pick<RerunRequest, "only" | "edits" | "reason" | "by" | "reuseChildren">,
  { version, children }: { version: number; children: readonly string[] },
): RerunInput {
  const { only, edits, reason, by } = request;
  const ref: RerunRef = {
    execution_id: state.executionId,
    from: prepared.from,
    ...(only && { only: true as const }),
    ...(Object.keys(edits.input).length > 0 && { input: Object.keys(edits.input) }),
    ...(Object.keys(edits.variables).length > 0 && { variables: edits.variables }),
    ...(Object.keys(edits.stepInput).length > 0 && { step_input: edits.stepInput }),
    ...(version !== stored.version && { version }),
    ...defined({ reason, by }),
  };
  return {
    ref,
    sealedUnder: sealingRoot(state),
    refersTo: [...new Set([...prepared.refersTo, ...children])],
    request: requestRow(ref, prepared, request),
    ...defined({ restored: prepared.restored }),
  };
}

/** The labels that people gave the original. Those that the playbook itself has are rendered anew (control, rule 8). */
async function keptLabels(
  database: Database,
  executionId: string,
  program: Program,
): Promise<Readonly<Record<string, string>>> {
  const rendered = new Set(program.labels.map(([name]) => name));
  const labels = await listLabels(database, executionId);
  return Object.fromEntries(Object.entries(labels).filter(([name]) => !rendered.has(name)));
}

/** A deletion of an original that began meanwhile has not seen the rerun: then it is cancelled, as results that it needs may be gone. */
async function followDeletion(
  { facts, cancel }: Pick<OriginalDeps, "facts"> & Pick<RerunDeps, "cancel">,
  executionId: string,
  originals: readonly string[],
): Promise<void> {
  for (const original of new Set(originals)) {
    await checkWhole(facts, original).catch(async (error: unknown) => {
      if (error instanceof FlowError && error.code === "NOT_FOUND")
        await cancel(executionId, `Execution ${original} was deleted meanwhile`);
      throw error;
    });
  }
}

/** The answer to a call that is repeated under its idempotency key. Throws `FlowError` INVALID_INPUT if that had another body. */
export async function findKnown(
  database: Database,
  { idempotency }: Pick<RerunRequest, "idempotency">,
): Promise<(Rerun & { rerunOf: string | null }) | undefined> {
  if (idempotency === undefined) return undefined;
  const known = await findStartByKey(database, idempotency.caller, idempotency.key);
  if (known === undefined) return undefined;
  if (known.bodySha256 !== idempotency.bodySha256) throw otherBody(idempotency.key);
  const row = await findRerun(database, known.executionId);
  if (row === undefined) return undefined;
  const { executionId, path, version, rerunOf, request } = row;
  const names = request?.["will_run"];
  return {
    executionId,
    path,
    version,
    rerunOf,
    reused: Number(request?.["reused"] ?? 0),
    willRun: Array.isArray(names) ? names.map(String) : [],
    warnings: [],
    duplicate: true,
  };
}

/** What lineage, and a repeated call, read of it: which values were replaced, and not by what. */
function requestRow(
  ref: RerunRef,
  { reused, willRun }: PreparedRerun,
  { reuseChildren }: Pick<RerunRequest, "reuseChildren">,
): JsonObject {
  const { from, only, input, variables, step_input, version, reason, by } = ref;
  const given = Object.entries(step_input ?? {}).map(([step, keys]) => [step, Object.keys(keys)]);
  return {
    from,
    reused,
    will_run: willRun,
    ...defined({ only, input, version, reason, by }),
    ...(variables !== undefined && { variables: Object.keys(variables) }),
    ...(step_input !== undefined && { step_input: Object.fromEntries(given) as JsonObject }),
    ...(Object.keys(reuseChildren).length > 0 && { reuse_children: { ...reuseChildren } }),
  };
}

/** The version of the playbook that is run. Throws `FlowError` NOT_FOUND. */
async function entryOf(
  database: Database,
  { catalogId, path }: { catalogId: string; path: string },
  { version }: RerunRequest,
): Promise<Executable> {
  const find = async () => {
    if (version === "same") return await findExecutableById(database, catalogId);
    if (version === "latest") return (await findExecutables(database, [path]))[0];
    return await findExecutableVersion(database, path, version);
  };
  const entry = await find();
  if (entry !== undefined) return entry;
  const what = version === "same" ? "its version is not in the catalog" : `there is no version ${version} of '${path}'`;
  throw new FlowError("NOT_FOUND", `'${path}' was not run again: ${what}`);
}
