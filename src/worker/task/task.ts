import { ownInputs } from "../../engine/decide/scope.ts";
import { taskScope } from "../../engine/decide/task-scope.ts";
import { milliseconds } from "../../engine/decide/time-limit.ts";
import { calledTask, codeNeeds, type ProgramTask, workbookName } from "../../engine/program/program.ts";
import type { LoadedReferences } from "../../language/template/loaded-references.ts";
import { type Template, toPlainJson } from "../../language/template/template.ts";
import { ReferenceNeeded } from "../../language/views/references.ts";
import { ResultView } from "../../language/views/result-view.ts";
import type { Scope } from "../../language/views/scope.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import { failed, type TaskErrorKind, type ToolResult } from "../../schema/words/outcome.ts";
import type { Task } from "../../schema/words/playbook.ts";
import type { ToolCall } from "../../tools/contract/tool.ts";
import { abortedResult, withDeadline } from "../deadline.ts";
import { openProgress } from "../reporting/progress.ts";
import { resolveAuth, scriptAuth } from "../secrets/credentials.ts";
import { hideSecrets, noteSensitive, notingAuth } from "../secrets/note-secrets.ts";
import { callChild } from "./call-playbook.ts";
import { type CommandContext, type TaskRun, traceparentOf } from "./command-context.ts";
import { type McpCall, prepareMcpCall } from "./mcp-call.ts";
import type { PipelineState } from "./pipeline-run.ts";
import { Parked, runWait } from "./wait.ts";

/**
 * Runs a task once: inputs, config, credentials, tool, in this order. Never throws for a failure of the work; whatever
 * goes wrong on the way is an outcome that the task's policy judges.
 */
export async function runTask(context: CommandContext, state: PipelineState, run: TaskRun): Promise<ToolResult> {
  if (run.signal.aborted) return abortedResult(run.signal);
  const result = await prepareAndExecute(context, state, run);
  const step = context.source.program.steps.get(context.place.command.step);
  if (step?.step.result.sensitive === true || run.task.task.result.sensitive) noteSensitive(result, context.secrets);
  return hideSecrets(result, context.secrets);
}

async function prepareAndExecute(context: CommandContext, state: PipelineState, run: TaskRun): Promise<ToolResult> {
  try {
    const target = calledTool(context, run.task);
    const prepared = await prepare(context, state, run, target);
    return await execute(context, state, run, target, prepared);
  } catch (error) {
    if (error instanceof Parked) throw error;
    if (run.signal.aborted) return abortedResult(run.signal);
    return preparationFailed(error);
  }
}

interface Prepared {
  input: JsonObject;
  /** The inputs without what arrived over the arc: what a child playbook is given. */
  ownInput: JsonObject;
  config: JsonObject;
  auth: ToolCall["auth"];
  timeoutMs: number | undefined;
  scope: Scope;
}

async function prepare(
  context: CommandContext,
  state: PipelineState,
  run: TaskRun,
  target: ProgramTask,
): Promise<Prepared> {
  const { references } = context.place;
  const { input, ownInput } = await renderInput(context, state, run, target);
  run.input = input;
  const scope = taskScope(context.place, state, { input: () => input, attempt: run.run });
  const render = (template: Template) => references.evaluate(() => template.render(scope, context.options));
  const config = await render(target.config);
  const auth = target.auth === undefined ? undefined : await render(target.auth);
  const timeout = run.task.timeoutMs ?? target.timeoutMs;
  const timeoutMs = timeout === undefined ? undefined : milliseconds(await render(timeout));
  const call = await authorised(context, target.task.kind, isJsonObject(config) ? config : {}, auth, run.signal);
  return {
    input,
    ownInput,
    config: call.config,
    auth: notingAuth(call.auth, context.secrets),
    timeoutMs: timeoutMs ?? call.timeoutMs,
    scope,
  };
}

/** The task's config with the credentials that it is carried out with. */
async function authorised(
  context: CommandContext,
  kind: string,
  config: JsonObject,
  auth: Json | undefined,
  signal: AbortSignal,
): Promise<McpCall> {
  if (kind === "mcp") return await prepareMcpCall(context, config, auth, signal);
  const { credentials } = context.deps;
  const found = { ...(await resolveAuth(credentials, auth, kind)), ...(await scriptAuth(credentials, kind, config)) };
  return { config, auth: found, timeoutMs: undefined };
}

/**
 * Inputs, later ones win: the arc's, the step's, the defaults of the workbook's tool, the task's own. The last two see only
 * what arrived and the step's: a default is not visible to the task's own inputs.
 */
async function renderInput(
  context: CommandContext,
  state: PipelineState,
  run: TaskRun,
  target: ProgramTask,
): Promise<{ input: JsonObject; ownInput: JsonObject }> {
  const { command, references } = context.place;
  const step = context.source.program.steps.get(command.step);
  const inputOptions = target.task.kind === "python" ? { ...context.options, whole: forCode } : context.options;
  const input: JsonObject = {};
  const ownInput: JsonObject = {};
  for (const key of Object.keys(command.context.input)) setOwn(input, key, own(command.context.input, key));
  const defaults = target === run.task ? [] : target.input;
  const fromStep = step === undefined ? [] : ownInputs(step, command.context.given);
  for (const layer of [fromStep, [...defaults, ...run.task.input]]) {
    if (layer.length === 0) continue;
    const seen = { ...input };
    const scope = taskScope(context.place, state, { input: () => seen, attempt: run.run });
    for (const [key, template] of layer) {
      const value = await references.evaluate(() => template.render(scope, inputOptions));
      setOwn(input, key, value);
      setOwn(ownInput, key, value);
    }
  }
  return { input, ownInput };
}

/** Code reads fields by itself: a result has its virtual fields as real ones there. */
function forCode(value: unknown): unknown {
  return value instanceof ResultView ? value.forCode() : value;
}

async function execute(
  context: CommandContext,
  state: PipelineState,
  run: TaskRun,
  target: ProgramTask,
  prepared: Prepared,
): Promise<ToolResult> {
  const { task } = target;
  const { deps, place, source } = context;
  const { command } = place;
  if (task.kind === "playbook") {
    const child = (signal: AbortSignal) => callChild(context, state, prepared.config, prepared.ownInput, run, signal);
    return await withDeadline(deps.clock, child, prepared.timeoutMs, run.signal, describe(run));
  }
  if (task.kind === "wait") return runWait(prepared.config, prepared.timeoutMs, deps.clock.now(), run.woken, run.park);
  const tool = await deps.tools.get(task.kind);
  const names = await codeNames(place.references, task, prepared.scope);
  const iteration = state.iteration?.index;
  const traceparent = traceparentOf(context, run);
  const progress = openProgress(deps.clock, run.report, run.log.news);
  const log = (line: string) => {
    const text = context.secrets.hide(line);
    if (run.log.add(text)) progress.wrote();
    deps.log({
      executionId: command.execution_id,
      commandId: command.command_id,
      step: command.step,
      task: run.task.task.label,
      ...(iteration !== undefined && { iteration }),
      text,
    });
  };
  const call = (signal: AbortSignal): Promise<ToolResult> =>
    tool.run({
      config: prepared.config,
      input: prepared.input,
      auth: prepared.auth,
      tokens: context.tokens.forTool(signal),
      executionId: command.execution_id,
      trustDomain: command.trust_domain ?? "",
      step: command.step,
      task: run.task.task.label,
      attempt: run.run,
      taskRunId: run.taskRunId,
      ...(traceparent !== undefined && { traceparent }),
      // The record of a sensitive manifest is sealed as a whole, and must be read before its parts.
      ...(task.kind === "artifact" && { open: context.open, ...defined({ stored: deps.stored }) }),
      signal,
      log,
      progress: progress.report,
      names: () => names,
      source: { file: source.file, ...(task.codeLine !== undefined && { codeLine: task.codeLine }) },
    });
  const limitMs = prepared.timeoutMs ?? tool.defaultTimeoutMs;
  let result: ToolResult;
  try {
    result = await withDeadline(deps.clock, call, limitMs, run.signal, describe(run));
  } finally {
    await progress.end(run.signal);
  }
  // Any other tool's text only looks sealed: what it brings came from elsewhere.
  return task.kind === "artifact" ? { ...result, data: await context.open(result.data) } : result;
}

function describe(run: TaskRun): string {
  return `Task '${run.task.task.label}' (${run.task.task.kind})`;
}

function calledTool({ source: { program } }: CommandContext, task: ProgramTask): ProgramTask {
  const called = calledTask(program, task);
  if (called !== undefined) return called;
  const known = [...program.workbook.keys()].join(", ") || "none";
  throw new FlowError("NOT_FOUND", `The workbook has no tool '${workbookName(task.task)}'; it has: ${known}`);
}

const KIND_OF_CODE: Partial<Record<FlowError["code"], TaskErrorKind>> = {
  TEMPLATE_ERROR: "template",
  TEMPLATE_BUDGET: "template",
  KEYCHAIN: "template",
  UNAUTHENTICATED: "auth",
  UNAVAILABLE: "connection",
  EGRESS_REFUSED: "client_error",
  REFERENCE_NOT_AVAILABLE: "not_found",
  CANCELLED: "cancelled",
};

function preparationFailed(error: unknown): ToolResult {
  if (error instanceof ReferenceNeeded) throw error;
  if (!(error instanceof FlowError)) return failed("unknown", "INTERNAL", messageOf(error));
  return failed(KIND_OF_CODE[error.code] ?? "configuration", error.code, error.message);
}

/**
 * Every name that code may read beside its inputs, as plain values: `context` of Python. Empty for tasks whose code cannot
 * read them, so that they pay nothing.
 */
export async function codeNames(references: LoadedReferences, task: Task, scope: Scope): Promise<JsonObject> {
  if (task.kind !== "python" || codeNeeds(task).names.size === 0) return {};
  return await references.evaluate(() => {
    const names: Record<string, unknown> = {};
    for (const name of scope.names()) {
      // Secrets reach code only through inputs that name them.
      const value = name === "keychain" ? undefined : scope.lookup(name);
      if (value !== undefined) setOwn(names, name, value instanceof ResultView ? value.forCode() : value);
    }
    return toPlainJson(names) as JsonObject;
  });
}
