import { iterationFields } from "../../language/template/names.ts";
import { toPlainJson } from "../../language/template/template.ts";
import { ResultView } from "../../language/views/result-view.ts";
import type { ChildOutcome, ChildRequest } from "../../ports/children.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";
import { failed, type ToolResult } from "../../schema/words/outcome.ts";
import { type CommandContext, type TaskRun, traceparentOf } from "./command-context.ts";
import type { PipelineState } from "./pipeline-run.ts";

/**
 * A task of kind `playbook`: runs another playbook as a child execution and waits for it (language document, section 8). The
 * child's result is merged over `{status, execution_id}`.
 */
export async function callChild(
  context: CommandContext,
  state: PipelineState,
  config: JsonObject,
  input: JsonObject,
  run: TaskRun,
  signal: AbortSignal,
): Promise<ToolResult> {
  const request = childRequest(context, state, config, input, run);
  if (request instanceof FlowError) return failed("configuration", request.code, request.message);
  const outcome = await context.deps.children.run(request, signal);
  const childId = outcome.executionId;
  if (outcome.status === "STARTED") {
    return { status: "ok", data: { status: "started", execution_id: childId, path: outcome.path }, childId };
  }
  const result = outcome.result === null ? null : new ResultView(outcome.result, context.place.references);
  const plain = result === null ? null : await context.place.references.evaluate(() => toPlainJson(result));
  const data = childData(outcome, plain);
  if (outcome.status === "COMPLETED") return { status: "ok", data, childId };
  const cause = rootCause(outcome);
  const message = `Task '${run.task.task.label}': the playbook '${outcome.path}' (execution ${outcome.executionId}) failed: ${cause}`;
  const details: JsonObject = { execution_id: outcome.executionId, status: outcome.status, cause };
  return { ...failed("sub_playbook", outcome.error?.code ?? outcome.status, message, { details }), data, childId };
}

/** What failed first: of playbooks within playbooks the innermost, so that the message does not grow with each level. */
function rootCause({ error, status }: ChildOutcome): string {
  const inner = error?.kind === "sub_playbook" && isJsonObject(error.details) ? own(error.details, "cause") : undefined;
  if (typeof inner === "string") return inner;
  return error?.message ?? `it was ${status.toLowerCase()}`;
}

function childData(outcome: ChildOutcome, result: Json): Json {
  const base: JsonObject = { status: outcome.status.toLowerCase(), execution_id: outcome.executionId };
  if (!isJsonObject(result)) return { ...base, data: result };
  return { ...base, ...result };
}

function childRequest(
  context: CommandContext,
  state: PipelineState,
  config: JsonObject,
  input: JsonObject,
  run: TaskRun,
): ChildRequest | FlowError {
  const { command } = context.place;
  const path = text(config, "path");
  const catalogId = text(config, "catalog_id");
  if (path === undefined && catalogId === undefined) {
    return new FlowError(
      "INVALID_INPUT",
      "A task of kind 'playbook' needs 'path' or 'catalog_id': which playbook to run",
    );
  }
  const payload = own(config, "payload");
  const version = text(config, "version");
  const returnStep = text(config, "return_step");
  const traceparent = traceparentOf(context, run);
  return {
    ...(path !== undefined && { path }),
    ...(catalogId !== undefined && { catalogId }),
    ...(version !== undefined && { version }),
    ...(returnStep !== undefined && { returnStep }),
    input: isJsonObject(payload) ? { ...input, ...payload } : input,
    async: own(config, "mode") === "async",
    parent: {
      execution_id: command.execution_id,
      step: command.step,
      ...(state.iteration !== undefined && { iter: iterationFields(state.iteration) }),
    },
    parentFile: context.source.file,
    key: `${run.taskRunId}-${run.run}`,
    ...(traceparent !== undefined && { traceparent }),
  };
}

function text(config: JsonObject, key: string): string | undefined {
  const value = own(config, key);
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
}
