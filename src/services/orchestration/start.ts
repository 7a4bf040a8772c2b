import { checkReturnStep } from "../../engine/decide/return-step.ts";
import { type StartRequest, startExecution } from "../../engine/decide/start.ts";
import { startLabels } from "../../engine/decide/start-labels.ts";
import { timeLimit } from "../../engine/decide/time-limit.ts";
import type { EngineEnv } from "../../engine/env.ts";
import type { Program } from "../../engine/program/program.ts";
import type { RerunEdits } from "../../engine/rerun/restore-state.ts";
import type { SealedDecisions } from "../../engine/sealing/decision-sealing.ts";
import { emptyState } from "../../engine/state/state.ts";
import { openAccount } from "../../language/expression/parsing/budget.ts";
import { type LoadedReferences, loadedReferences } from "../../language/template/loaded-references.ts";
import type { ExecutionStart } from "../../ports/execution-store.ts";
import type { TraceRef } from "../../schema/words/command.ts";
import { defined } from "../../schema/words/defined.ts";
import type { RerunRef } from "../../schema/words/event.ts";
import { type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import type { DeclaredInputs } from "../../schema/words/playbook.ts";
import { otherBody } from "../errors.ts";
import { runJob, startJob, withTimeLimits } from "./jobs.ts";
import { decisionsOf, type LiveExecution, trustDomain } from "./memory/load-execution.ts";
import type { CommandProgram } from "./memory/program-cache.ts";
import type { Orchestrator, StartInput } from "./orchestrator.ts";
import type { OrchestratorParts } from "./parts.ts";

/** Creates {@link Orchestrator.start}. */
export function createStart(parts: OrchestratorParts): Orchestrator["start"] {
  return async (input) => {
    const leave = parts.gate.enter("UNAVAILABLE", input.bytes ?? 0);
    try {
      return await startOnce(parts, input, leave);
    } finally {
      leave();
    }
  };
}

/** @param leave is called when the start is in the queue. */
async function startOnce(
  parts: OrchestratorParts,
  input: StartInput,
  leave: () => void,
): ReturnType<Orchestrator["start"]> {
  const known = input.idempotency?.isNew === true ? undefined : await findKnown(parts, input);
  if (known !== undefined) return known;
  const source = await parts.programs(input.entry.catalogId);
  // Above its original's: that may be of another server, whose ids are newer.
  const floor = Number(input.rerun?.ref.execution_id ?? 0);
  if (!parts.ids.isReady(floor)) await parts.ids.ready(floor);
  const executionId = String(parts.ids.next());
  try {
    await begin(parts, input, source, executionId, leave);
    input.log?.ended(true);
    return { executionId, status: parts.cache.peek(executionId)?.live?.state.status ?? "RUNNING", duplicate: false };
  } catch (error) {
    input.log?.ended(false);
    // Two requests with one key at the same moment: the other request was first.
    const first = parts.isDuplicateKey(error) ? await findKnown(parts, input) : undefined;
    if (first === undefined) throw error;
    return first;
  }
}

async function begin(
  parts: OrchestratorParts,
  input: StartInput,
  source: CommandProgram,
  executionId: string,
  leave: () => void,
): Promise<void> {
  const { now, applyDeps, env, cache } = parts;
  checkReturnStep(source.program, input.returnStep);
  const attached: LiveExecution["attached"] = new Map();
  const sealedUnder = input.rerun?.sealedUnder ?? input.sealedUnder;
  const decisions = decisionsOf(parts, executionId, () => defined({ parent: input.parent, sealedUnder }), attached);
  const references = loadedReferences(decisions.store);
  const { sealing } = decisions;
  const engineEnv = { now: now(), newId: () => String(applyDeps.newId()), references, env, sealing };
  const given = await sealedGiven(input, decisions, source.program.playbook.inputs);
  const request = await requestOf(parts, input, source.program, { executionId, given, sealedUnder });
  const first = await references.evaluate(() =>
    startExecution(request, source.program, { ...engineEnv, account: openAccount() }),
  );
  const restored = input.rerun?.restored?.events(first.at, given.edits) ?? [];
  const events = [first, ...(sealing === undefined ? restored : restored.map((event) => sealing.event(event)))];
  const limitMs = await references.evaluate(() =>
    timeLimit(source.program, first.workload, { ...engineEnv, account: openAccount() }),
  );
  const labels = await labelsOf(input, source.program, first.workload, references, engineEnv);
  const start: ExecutionStart = {
    ...input.entry,
    mustBeNewest: input.mustBeNewest ?? false,
    parentExecutionId: input.parent?.execution_id ?? null,
    parentStep: input.parent?.step ?? null,
    rootExecutionId: input.rootExecutionId ?? executionId,
    startedBy: input.startedBy ?? null,
    origin: input.origin ?? null,
    labels,
    idempotency: input.idempotency ?? null,
    ...defined({ fireId: input.fireId, newFire: input.newFire }),
    startedAt: first.at,
    deadlineAt: limitMs === undefined ? null : first.at + limitMs,
    ...lineOf(input.rerun, sealedUnder),
    audit: input.log?.rows(executionId) ?? [],
  };
  const fresh = (): LiveExecution => ({
    state: { ...emptyState(), executionId, path: source.path },
    source,
    catalogId: input.entry.catalogId,
    trustDomain: trustDomain(input.entry.path, start.startedBy ?? null),
    lastEventId: Number(executionId),
    undecided: [],
    issued: new Map(),
    marks: new Map(),
    tally: new Map(),
    references,
    ...{ decisions, attached, eventsSinceSnapshot: 0 },
  });
  const cached = cache.entry(executionId);
  // There is nothing to load yet.
  cached.missing = true;
  leave();
  const job = (base: Parameters<typeof startJob>[3]) => startJob(events, start, fresh, base);
  await runJob(withTimeLimits(parts), [executionId], (base) => ({ ...job(base), bytes: input.bytes ?? 0 }));
}

/** What the engine starts. */
async function requestOf(
  parts: OrchestratorParts,
  input: StartInput,
  { playbook }: Program,
  { executionId, given, sealedUnder }: { executionId: string; given: Given; sealedUnder: string | undefined },
): Promise<StartRequest> {
  const trace = traceOf(parts, executionId, input.traceparent);
  return {
    executionId,
    catalogId: input.entry.catalogId,
    input: given.input,
    ...(input.parent !== undefined && { parent: input.parent }),
    ...(input.target !== undefined && { target: input.target }),
    ...(trace !== undefined && { trace }),
    ...defined({
      sealedUnder,
      rerun: given.ref,
      workload: recordedWorkload(input.rerun, given.input),
    }),
    // Most playbooks declare no inputs, and need no checker.
    ...(playbook.inputs !== undefined && {
      findProblems: (await import("../../platform/json-schema.ts")).problemsWithData,
    }),
  };
}

/** Those of its start and of its playbook; most executions have none. */
async function labelsOf(
  { labels: given = {} }: StartInput,
  program: Program,
  workload: JsonObject,
  references: LoadedReferences,
  env: Omit<EngineEnv, "account">,
): Promise<Readonly<Record<string, string>>> {
  if (program.labels.length === 0 && Object.keys(given).length === 0) return given;
  return await references.evaluate(() => startLabels(program, workload, given, { ...env, account: openAccount() }));
}

/** What a start was given, with its secrets sealed. */
interface Given {
  input: JsonObject;
  /** Of a rerun: what it was asked for, and what of that it begins with. */
  ref?: RerunRef;
  edits: Pick<RerunEdits, "input" | "stepInput">;
}

/** A secret that a rerun was given is one of its first events too, wherever it stands in them. */
async function sealedGiven(
  { input, rerun }: StartInput,
  decisions: SealedDecisions,
  declared: DeclaredInputs | undefined,
): Promise<Given> {
  const sealed = await decisions.input(input, declared);
  const edits: Given["edits"] = { input: {}, stepInput: {} };
  if (rerun === undefined) return { input: sealed, edits };
  if (sealed !== input) decisions.sealing?.open(sealed);
  for (const key of rerun.ref.input ?? []) setOwn(edits.input, key, own(sealed, key));
  const { step_input: asked } = rerun.ref;
  if (asked === undefined) return { input: sealed, ref: rerun.ref, edits };
  for (const [step, keys] of Object.entries(asked)) {
    const given = await decisions.input(keys, declared);
    if (given !== keys) decisions.sealing?.open(given);
    setOwn(edits.stepInput, step, given);
  }
  return { input: sealed, ref: { ...rerun.ref, step_input: edits.stepInput }, edits };
}

/** The workload that a rerun takes over, with its edited keys as the input has them: secrets among these are sealed there. */
function recordedWorkload(rerun: StartInput["rerun"], input: JsonObject): JsonObject | undefined {
  const workload = rerun?.restored?.workload;
  if (workload === undefined) return undefined;
  const edited: JsonObject = { ...workload };
  for (const key of rerun?.ref.input ?? []) setOwn(edited, key, own(input, key));
  return edited;
}

/** The line of reruns that it belongs to, if it does. */
function lineOf(rerun: StartInput["rerun"], sealedUnder: string | undefined): Pick<ExecutionStart, "line"> {
  if (sealedUnder === undefined) return {};
  if (rerun === undefined) return { line: { sealed_under: sealedUnder } };
  const { refersTo, request, ref } = rerun;
  return { line: { sealed_under: sealedUnder, rerun_of: ref.execution_id, refers_to: refersTo, request } };
}

function traceOf(parts: OrchestratorParts, executionId: string, traceparent: string | undefined): TraceRef | undefined {
  if (parts.traceOf !== undefined) return parts.traceOf(executionId, traceparent);
  return traceparent === undefined ? undefined : { context: traceparent };
}

/**
 * The execution that was started under the same key before. Throws `FlowError` INVALID_INPUT if that request had another body.
 */
async function findKnown(parts: OrchestratorParts, { idempotency }: StartInput) {
  if (idempotency === undefined) return undefined;
  const known = await parts.store.findStart(idempotency.caller, idempotency.key);
  if (known === undefined) return undefined;
  if (known.bodySha256 !== idempotency.bodySha256) throw otherBody(idempotency.key);
  return { executionId: known.executionId, status: known.status, duplicate: true };
}
