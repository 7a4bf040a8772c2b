import * as v from "valibot";
import { REASON_MAX } from "../../schema/api/executions.ts";
import { defined } from "../../schema/words/defined.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { IdInput, storableText } from "../../schema/words/wire.ts";
import type { ExecutionDetail } from "../../services/executions/executions.ts";
import type { AgentCaller } from "../../services/mcp/tool-calls.ts";
import { check } from "../http/validate.ts";
import type { SteeringCaller } from "./caller.ts";
import type { McpParts } from "./deps.ts";
import { RERUN_SHAPE, RERUN_TOOL, rerun } from "./rerun-tool.ts";
import { didAnswer, type ShownTool, type ToolAnswer } from "./results.ts";
import { SIGNAL_SHAPE, SIGNAL_TOOL, signal } from "./signal-tool.ts";

/*
 * Tools about executions, beside the agents: what one does now and why, pausing it, running it again. They need the rights of the calls of the
 * API that do the same. Their names cannot be those of agents: the three underscores would have a digest behind them.
 */

type Shape = Pick<ShownTool, "inputSchema" | "outputSchema" | "annotations">;
type Act = (
  parts: Pick<McpParts, "executions" | "signals">,
  who: SteeringCaller,
  inputs: JsonObject,
) => Promise<ToolAnswer>;

const ID: JsonObject = { type: "string", description: "Id of the execution, as the answers of other tools name it." };
const WHY: JsonObject = { type: "string", description: "Why; it is kept with the execution." };

const About = v.object({ execution_id: IdInput });
const Change = v.object({ execution_id: IdInput, reason: v.exactOptional(storableText(REASON_MAX)) });

/** What a model reads of each, and what a call does. */
const TOOLS: Readonly<Record<string, { title: string; description: string; shape: Shape; act: Act }>> = {
  flow___status: {
    title: "Status of an execution",
    description: "Says how far an execution of flow is: its status, its steps, its error.",
    shape: shapeOf(true),
    act: (parts, who, inputs) => look(parts, who, inputs, summaryOf),
  },
  flow___explain: {
    title: "What an execution does now, and why",
    description:
      "Says in sentences what an execution of flow does at the moment, what it waits for, and why it failed.",
    shape: shapeOf(true),
    act: (parts, who, inputs) => look(parts, who, inputs, explain),
  },
  flow___pause: {
    title: "Pause an execution",
    description:
      "Nothing further of an execution of flow is begun until it is resumed; what runs goes on. Its children too.",
    shape: shapeOf(false),
    act: (parts, who, inputs) => change("pause", parts, who, inputs),
  },
  flow___resume: {
    title: "Resume an execution",
    description: "A paused execution of flow goes on, and its children.",
    shape: shapeOf(false),
    act: (parts, who, inputs) => change("resume", parts, who, inputs),
  },
  flow___signal: { ...SIGNAL_TOOL, shape: SIGNAL_SHAPE, act: signal },
  flow___rerun: { ...RERUN_TOOL, shape: RERUN_SHAPE, act: rerun },
};

function shapeOf(isRead: boolean): Shape {
  return {
    inputSchema: {
      type: "object",
      properties: isRead ? { execution_id: ID } : { execution_id: ID, reason: WHY },
      required: ["execution_id"],
    },
    outputSchema: {
      type: "object",
      properties: { execution_id: { type: "string" }, status: { type: "string" } },
      required: ["execution_id", "status"],
    },
    annotations: { readOnlyHint: isRead, destructiveHint: false },
  };
}

/** These tools, for those who may execute anything. */
export function steeringTools(caller: AgentCaller): ShownTool[] {
  const paths = caller.callable();
  if (paths !== undefined && paths.length === 0) return [];
  return Object.entries(TOOLS).map(([name, { title, description, shape }]) => ({ name, title, description, ...shape }));
}

/** Whether a name is that of one of these tools. */
export function isSteeringTool(name: string): boolean {
  return Object.hasOwn(TOOLS, name);
}

/** Calls one of them. Throws `FlowError` NOT_FOUND, FORBIDDEN, INVALID_INPUT, already_terminal, and what a rerun throws. */
export async function callSteeringTool(
  parts: Pick<McpParts, "executions" | "signals">,
  who: SteeringCaller,
  name: string,
  inputs: JsonObject,
): Promise<ToolAnswer> {
  const tool = TOOLS[name];
  if (tool === undefined) throw new Error(`There is no tool '${name}'`);
  return await tool.act(parts, who, inputs);
}

async function look(
  { executions }: Pick<McpParts, "executions">,
  { caller }: SteeringCaller,
  inputs: JsonObject,
  told: (detail: ExecutionDetail) => { text: string; more?: JsonObject },
): Promise<ToolAnswer> {
  const { execution_id: id } = check(About, inputs, "The arguments");
  const detail = await executions.detail(id);
  await caller.permit("view", detail.row.path);
  await caller.decided(id);
  const { text, more } = told(detail);
  return didAnswer(text, { execution_id: id, status: detail.row.status, ...more });
}

async function change(
  what: "pause" | "resume",
  { executions }: Pick<McpParts, "executions">,
  { caller, by, record }: SteeringCaller,
  inputs: JsonObject,
): Promise<ToolAnswer> {
  const { execution_id: id, reason } = check(Change, inputs, "The arguments");
  const { row } = await executions.detail(id);
  await caller.permit("execute", row.path);
  await caller.decided(id);
  const { status, children } = await executions[what](id, { by, cascade: true, ...defined({ reason }) });
  await record(`execution.${what}`, id, { cascade: true, children, ...defined({ reason }) });
  const also = children > 0 ? `, and ${children} that it has called` : "";
  return didAnswer(`Execution ${id} of '${row.path}' is ${status}${also}`, { execution_id: id, status, children });
}

function summaryOf({ row, steps }: ExecutionDetail): { text: string; more: JsonObject } {
  const { executionId, path, version, status, progress, startedAt, endedAt, error } = row;
  const more = {
    ...{ path, version, progress, started_at: startedAt.toISOString() },
    ended_at: endedAt?.toISOString() ?? null,
    error: error as JsonObject | null,
    steps: steps.map(({ name, status: is }) => ({ name, status: is })),
  };
  return { text: JSON.stringify({ execution_id: executionId, status, ...more }), more };
}

/** Sentences of one explanation. */
const SENTENCES_MAX = 20;

function explain(detail: ExecutionDetail): { text: string } {
  const { row, paused, commands, steps, next_retry: retry } = detail;
  const { executionId, path, status, endedAt, error } = row;
  const said = [`Execution ${executionId} of '${path}' is ${status}, ${row.progress} % of its steps are done.`];
  if (endedAt !== null) {
    said.push(`It ended at ${endedAt.toISOString()}.`);
    const { message, code, step } = (error ?? {}) as { message?: string; code?: string; step?: string };
    const what = status === "CANCELLED" ? "was cancelled" : "failed";
    if (message !== undefined)
      said.push(`${step === undefined ? "It" : `Step '${step}'`} ${what}: ${message} (${code}).`);
    return { text: said.join("\n") };
  }
  if (paused !== undefined) {
    const why = paused.reason === null ? "" : `: ${paused.reason}`;
    said.push(`It was paused at ${paused.since} by ${paused.by ?? "somebody"}${why}. It goes on with flow___resume.`);
  }
  for (const { step, status: is, worker, attempt, issued_at: since = "", claimed_at: claimed, children } of commands) {
    const again = attempt > 1 ? ` (attempt ${attempt}: a worker was lost before)` : "";
    const calls = children === undefined ? "" : `, and waits for executions ${children.join(", ")}`;
    if (worker !== null) said.push(`Step '${step}' is with worker ${worker} since ${claimed}${again}${calls}.`);
    else if (is === "WAITING") continue;
    else if (paused !== undefined) said.push(`Step '${step}' waits for the resumption.`);
    else said.push(`Step '${step}' waits for a worker since ${since}${again}.`);
  }
  for (const { step, iteration, kind, name, key, due } of detail.waiting_for) {
    if (kind === "retry") continue;
    const which = iteration === undefined ? "" : `, iteration ${iteration},`;
    const of = key === undefined ? "" : ` with key '${key}'`;
    const what = kind === "signal" ? ` for signal '${name}'${of} to be sent` : "";
    said.push(
      `Step '${step}'${which} waits${what}${due === undefined ? "" : ` until ${due}`} by itself: no worker is needed.`,
    );
  }
  if (retry !== null) {
    const why = retry.error === null ? "" : `, after ${retry.error.code}: ${retry.error.message}`;
    said.push(`Task '${retry.task}' of step '${retry.step}' runs again at ${retry.at}${why}.`);
  }
  const failed = steps.filter(({ status: is }) => is === "FAILED").map(({ name }) => `'${name}'`);
  if (failed.length > 0) said.push(`Failed so far: ${failed.join(", ")}.`);
  if (commands.length === 0 && paused === undefined) said.push("Its server works out what comes next.");
  const left = said.length - SENTENCES_MAX;
  const shown = left > 0 ? [...said.slice(0, SENTENCES_MAX), `… and ${left} more.`] : said;
  return { text: shown.join("\n") };
}
