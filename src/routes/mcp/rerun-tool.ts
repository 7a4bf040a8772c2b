import { createHash } from "node:crypto";
import { toJsonSchema } from "@valibot/to-json-schema";
import * as v from "valibot";
import { type RerunAnswer, RerunBody, type RerunStep } from "../../schema/api/steering.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { IdInput } from "../../schema/words/wire.ts";
import type { Executions } from "../../services/executions/executions.ts";
import { askedRerun, rerunAnswer } from "../executions/rerun-request.ts";
import { check } from "../http/validate.ts";
import type { SteeringCaller } from "./caller.ts";
import { didAnswer, refusedAnswer, type ShownTool, type ToolAnswer } from "./results.ts";

/*
 * Running an execution again. A model that has not asked for the plan has not shown it to a person: without `dry_run: false` nothing begins.
 */

/** Its words for a model. */
export const RERUN_TOOL = {
  title: "Run an execution again",
  description:
    "Runs an execution of flow that has ended again, as a new execution, from its failed or from some of its steps on; the results of the " +
    "steps before are reused. Call it without dry_run first: it answers the plan (which steps are reused, which run again and what they do " +
    "outside) and begins nothing. Show the plan to the person, and only when they agree call it with the same arguments and dry_run: false.",
};

const { dry_run: _dryRun, ...choices } = RerunBody.entries;
const Inputs = v.strictObject({
  execution_id: v.pipe(IdInput, v.description("Id of the execution to repeat; it must have ended.")),
  ...choices,
  dry_run: v.exactOptional(
    v.pipe(v.boolean(), v.description("true, the default: answers the plan, begins nothing. false: begins it.")),
  ),
});

const { $schema: _schema, ...inputSchema } = toJsonSchema(Inputs, { typeMode: "input", errorMode: "ignore" });

/** What it takes and gives. */
export const RERUN_SHAPE = {
  inputSchema: { ...(inputSchema as unknown as JsonObject), type: "object" },
  outputSchema: {
    type: "object",
    properties: {
      execution_id: { type: "string", description: "The new execution; absent from a plan." },
      rerun_of: { type: "string" },
      reused: { type: "integer" },
      will_run: { type: "array", items: { type: "string" } },
      steps: { type: "array", items: { type: "object" } },
    },
    required: ["rerun_of", "reused", "will_run"],
  },
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false },
} as const satisfies Pick<ShownTool, "inputSchema" | "outputSchema" | "annotations">;

/** Begins a rerun, or answers its plan. Throws `FlowError` as `Executions.rerun` does, and FORBIDDEN. */
export async function rerun(
  { executions }: { executions: Pick<Executions, "detail" | "rerun"> },
  { caller, by, key, row }: SteeringCaller,
  inputs: JsonObject,
): Promise<ToolAnswer> {
  const { execution_id: id, dry_run: dryRun = true, ...body } = check(Inputs, inputs, "The arguments");
  const { reason } = body;
  // Before anything about it is said.
  await caller.permit("execute", (await executions.detail(id)).row.path);
  const json = JSON.stringify([id, body]);
  const bodySha256 = createHash("sha256").update(json).digest("hex");
  const answer = await executions
    .rerun(id, {
      ...askedRerun({ ...body, dry_run: dryRun }),
      by,
      bytes: Buffer.byteLength(json),
      permit: (path) => caller.permit("execute", path),
      permitView: (path) => caller.permit("view", path),
      may: (path) => caller.may("execute", path),
      log: {
        rows: (begun) => [
          ...caller.log.rows(begun),
          row("execution.rerun", id, { execution_id: begun, ...defined({ reason }) }),
        ],
        ended: caller.log.ended,
      },
      origin: { kind: "mcp" },
      ...defined({ startedBy: caller.userId }),
      // Not that of an agent's call: who resumes such a one waits for its end.
      ...(key !== undefined && { idempotency: { caller: `mcp-rerun:${caller.id}`, key, bodySha256 } }),
    })
    .catch(async (error: unknown) => {
      await caller.failed(error);
      // A version or a child that is not there is an argument to be mended.
      if (error instanceof FlowError && error.code === "NOT_FOUND") return error;
      throw error;
    });
  if (answer instanceof FlowError) return refusedAnswer(answer);
  await caller.decided(answer.executionId ?? id);
  const told = rerunAnswer(id, answer);
  return didAnswer(told.execution_id === undefined ? planText(told) : begunText(told), told as unknown as JsonObject);
}

/** Steps that a text names: a model reads all of it. The structured answer has the rest. */
const NAMED_MAX = 50;

function planText({ rerun_of: id, path, version, reused, will_run: willRun, steps = [] }: RerunAnswer): string {
  const certain = new Set(willRun);
  const run = steps.filter(({ action }) => action === "run");
  const kept = steps.filter(({ action }) => action === "reuse");
  return [
    `Plan: execution ${id} of '${path}' would run again as a new execution, with version ${version}. Nothing was begun.`,
    `Reused, ${reused} in number: ${namesOf(kept.map(({ step }) => step))}.`,
    ...run.slice(0, NAMED_MAX).map((step) => `${certain.has(step.step) ? "Runs" : "May run"}: ${effectOf(step)}.`),
    ...(run.length > NAMED_MAX ? [`… and ${run.length - NAMED_MAX} more steps.`] : []),
    "Show this to the person. If they agree, call the tool with the same arguments and dry_run: false.",
  ].join("\n");
}

function effectOf({ step, kind, effect, protected_by: by }: RerunStep): string {
  const what = `step '${step}' (${kind})`;
  if (effect === null) return `${what}, which does nothing outside`;
  const twice =
    by === null ? "nothing keeps it from happening twice" : "its idempotency key keeps it from happening twice";
  return `${what}, which ${effect}; ${twice}`;
}

function begunText({
  execution_id: begun,
  rerun_of: id,
  reused,
  will_run: willRun,
  warnings = [],
}: RerunAnswer): string {
  return [
    `Execution ${begun} has begun. It repeats ${id}: ${reused} of its steps are reused; run again: ${namesOf(willRun)}.`,
    ...warnings.map((warning) => `Warning: ${warning}`),
    `Look at it with flow___explain.`,
  ].join("\n");
}

function namesOf(steps: readonly string[]): string {
  const named = steps.slice(0, NAMED_MAX).map((name) => `'${name}'`);
  const left = steps.length - named.length;
  if (left > 0) named.push(`and ${left} more`);
  return named.length === 0 ? "none" : named.join(", ");
}
