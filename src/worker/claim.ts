import type { ProgramStep } from "../engine/program.ts";
import type { CommandRef } from "../schema/event.ts";
import { isJsonObject, type Json, own } from "../schema/json.ts";
import type { ToolResult } from "../schema/outcome.ts";
import { resolveAuth } from "./auth.ts";
import { withDeadline } from "./deadline.ts";
import type { Report } from "./deps.ts";
import { freshState } from "./pipeline.ts";
import { taskScope } from "./scope.ts";
import { stepInput } from "./step-input.ts";
import type { TaskSurroundings } from "./surroundings.ts";

/** Longest that a claim's statement may take. */
const CLAIM_TIMEOUT_MS = 60_000;

/**
 * Runs a cursor's claim and reports the rows that it returned, one per iteration, or all as one where the frame is
 * processed as a whole (language document, section 6).
 */
export async function claimRows(
  around: TaskSurroundings,
  step: ProgramStep,
  maxRows: number,
  ref: CommandRef,
  report: Report,
  signal: AbortSignal,
): Promise<void> {
  const result = await runClaim(around, step, maxRows, signal);
  const at = around.deps.clock.now();
  if (result.error !== undefined) {
    const error = { ...result.error, step: step.step.name };
    await report([{ type: "command.failed", at, ...ref, error }]);
    return;
  }
  const rows = rowsOf(result);
  const isFrame = step.step.loop?.cursor?.process === "frame";
  await report([{ type: "command.completed", at, ...ref, rows: isFrame && rows.length > 0 ? [rows] : rows }]);
}

async function runClaim(
  around: TaskSurroundings,
  step: ProgramStep,
  maxRows: number,
  signal: AbortSignal,
): Promise<ToolResult> {
  const { deps, place, source } = around;
  const claim = step.loop?.claim;
  const kind = step.step.loop?.cursor?.kind ?? "sqldb";
  const input = await stepInput(around, step);
  const at = { input: () => input, attempt: 1, extra: { __frame_max_rows: maxRows } };
  const scope = taskScope(place, freshState(), at);
  const now = () => deps.clock.now();
  const render = async (template: NonNullable<typeof claim>["statement"] | undefined) =>
    template === undefined ? undefined : await place.references.evaluate(() => template.render(scope, { now }));
  const command = (await render(claim?.statement)) ?? null;
  const auth = await resolveAuth(deps.credentials, await render(claim?.auth));
  const tool = await deps.tools.get(kind);
  const call = (stop: AbortSignal) =>
    tool.run({
      config: { command },
      input,
      auth,
      executionId: place.command.execution_id,
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
