import { taskScope } from "../../engine/decide/task-scope.ts";
import type { ProgramStep } from "../../engine/program/program.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { CommandRef } from "../../schema/words/event.ts";
import { isJsonObject, type Json, own } from "../../schema/words/json.ts";
import type { TaskError, ToolResult } from "../../schema/words/outcome.ts";
import { withDeadline } from "../deadline.ts";
import type { Report } from "../deps.ts";
import { resolveAuth } from "../secrets/credentials.ts";
import { hideSecrets } from "../secrets/note-secrets.ts";
import type { CommandContext } from "../task/command-context.ts";
import { freshState } from "../task/pipeline.ts";
import { stepInput } from "./step-input.ts";

/** Longest that a claim's statement may take. */
const CLAIM_TIMEOUT_MS = 60_000;

/**
 * Runs a cursor's claim and reports the rows that it returned, one per iteration, or all as one where the frame is
 * processed as a whole (language document, section 6).
 */
export async function runCursorClaim(
  context: CommandContext,
  step: ProgramStep,
  maxRows: number,
  ref: CommandRef,
  report: Report,
  signal: AbortSignal,
): Promise<void> {
  await context.deps.lease?.held(signal);
  const result = hideSecrets(await claimRows(context, step, maxRows, signal), context.secrets);
  const at = context.deps.clock.now();
  const failed = (error: TaskError) =>
    report([{ type: "command.failed", at, ...ref, error: { ...error, step: step.step.name } }]);
  if (result.error !== undefined) return await failed(result.error);
  const claimed = rowsOf(result);
  const bytes = Buffer.byteLength(JSON.stringify(claimed));
  if (bytes > ROWS_BYTES_MAX) return await failed(tooLarge(claimed.length, bytes));
  const isFrame = step.step.loop?.cursor?.process === "frame";
  const rows = isFrame ? inFrames(claimed, await maxBytes(context, step)) : claimed;
  await report([{ type: "command.completed", at, ...ref, rows }]);
}

/** Most bytes of a claim's rows, as JSON: they travel in one event, which the server takes up to 2 MiB. */
const ROWS_BYTES_MAX = 1_048_576;

function tooLarge(rows: number, bytes: number): TaskError {
  const message =
    `it gave ${rows} rows of ${bytes} bytes, more than ${ROWS_BYTES_MAX}; they were claimed, and nothing worked on them. ` +
    "Claim fewer at a time (frame.max_rows), or only their keys, and read the rest in the step";
  return { kind: "client_error", code: "RESULT_TOO_LARGE", message, retryable: false };
}

/** Rows that are processed as a whole, in lists of at most so many bytes; a row that is larger stands alone. */
function inFrames(rows: readonly Json[], bytesMax: number): Json[][] {
  const frames: Json[][] = [];
  let room = 0;
  for (const row of rows) {
    const bytes = Buffer.byteLength(JSON.stringify(row)) + 1;
    const frame = frames.at(-1);
    if (frame === undefined || bytes > room) {
      frames.push([row]);
      room = bytesMax - bytes;
    } else {
      frame.push(row);
      room -= bytes;
    }
  }
  return frames;
}

async function maxBytes(context: CommandContext, step: ProgramStep): Promise<number> {
  const template = step.loop?.claim?.maxBytes;
  if (template === undefined) return Number.POSITIVE_INFINITY;
  const input = await stepInput(context, step);
  const scope = taskScope(context.place, freshState(), { input: () => input, attempt: 1 });
  const value = await context.place.references.evaluate(() => template.render(scope, context.options));
  const number = Number(value ?? Number.NaN);
  if (number >= 1) return number;
  const got = JSON.stringify(value).slice(0, 100);
  throw new FlowError(
    "INVALID_INPUT",
    `'max_bytes' of the loop of step '${step.step.name}' must be a number from 1, got ${got}`,
  );
}

async function claimRows(
  context: CommandContext,
  step: ProgramStep,
  maxRows: number,
  signal: AbortSignal,
): Promise<ToolResult> {
  const { deps, place, source } = context;
  const claim = step.loop?.claim;
  const kind = step.step.loop?.cursor?.kind ?? "sqldb";
  const input = await stepInput(context, step);
  const given = { input: () => input, attempt: 1 };
  const lease =
    claim &&
    (await place.references.evaluate(() =>
      claim.leaseSeconds.render(taskScope(place, freshState(), given), context.options),
    ));
  // The id is the same for every attempt of this claim: the worker that repeats it after a loss finds the rows of the first
  // attempt by it.
  const extra = { __frame_max_rows: maxRows, __frame_lease_seconds: lease, __claim_id: place.command.command_id };
  const scope = taskScope(place, freshState(), { ...given, extra });
  const render = async (template: NonNullable<typeof claim>["statement"] | undefined) =>
    template === undefined ? undefined : await place.references.evaluate(() => template.render(scope, context.options));
  const command = (await render(claim?.statement)) ?? null;
  const auth = await resolveAuth(deps.credentials, await render(claim?.auth), kind);
  const tool = await deps.tools.get(kind);
  const call = (stop: AbortSignal) =>
    tool.run({
      config: { command },
      input,
      auth,
      tokens: context.tokens.forTool(stop),
      executionId: place.command.execution_id,
      trustDomain: place.command.trust_domain ?? "",
      step: place.command.step,
      task: "claim",
      attempt: 1,
      taskRunId: `${place.command.command_id}-claim`,
      signal: stop,
      log: () => undefined,
      names: () => ({}),
      source: { file: source.file },
    });
  return await withDeadline(deps.clock, call, CLAIM_TIMEOUT_MS, signal, `The claim of step '${step.step.name}'`);
}

function rowsOf(result: ToolResult): Json[] {
  if (Array.isArray(result.data)) return result.data;
  const rows = isJsonObject(result.data) ? own(result.data, "rows") : undefined;
  return Array.isArray(rows) ? rows : [];
}
