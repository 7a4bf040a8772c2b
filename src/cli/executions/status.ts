import type { LocalPlaybook } from "../../local/catalog.ts";
import { loadConfig } from "../../platform/config/config.ts";
import type { OpenCommandAnswer, WaitingForAnswer } from "../../schema/api/commands.ts";
import type { ExecutionAnswer, NextRetryAnswer } from "../../schema/api/executions.ts";
import type { PoolItem } from "../../schema/api/workers.ts";
import { CATALOG_ROUTES } from "../../schema/routes/catalog.ts";
import { EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import { type CliInput, type CliIo, EXIT } from "../command-line/command.ts";
import { failureLines, serverLocation } from "../progress/failure-report.ts";
import { firstLine } from "../progress/lines.ts";
import { isUnreached, rowOfExecution } from "../progress/status-row.ts";
import { treeLines } from "../progress/tree.ts";
import { callServer } from "../server/client.ts";
import { listWorkers } from "../server/executions-api.ts";
import { type ServerTarget, serverTarget } from "../server/target.ts";
import { type Style, styleFor } from "../terminal/style.ts";
import { cleanText, formatDuration, jsonText, labelText, plural } from "../terminal/text.ts";
import { executionArgument } from "../watch/execution-id.ts";
import { readDocument } from "../watch/server-playbook.ts";
import { waitReason } from "../watch/wait-reason.ts";
import { watchOnServer } from "../watch/watch.ts";
import { createWatch } from "../watch/watched-run.ts";
import { durationOf, originText, paintStatus } from "./executions.ts";

/** Steps that are printed. */
const LINES_MAX = 1_000;
/** Columns where standard output is no terminal. */
const COLUMNS_DEFAULT = 200;

/** `flow status`: what an execution is doing, and why; with `--watch` until it has ended, as `flow run` shows it. */
export async function showStatus(input: CliInput): Promise<number> {
  const { options, io } = input;
  const target = await serverTarget(input, loadConfig(io.environment));
  const id = await executionArgument(input, target);
  const execution = await callServer(target, EXECUTION_ROUTES.detail, {
    params: { execution_id: id },
    signal: io.signal,
  });
  if (options["watch"] === true) {
    const document = await documentOf(target, execution, io);
    const run = { target, executionId: id, document, startedAt: undefined, cancelOnStop: false };
    return await watchOnServer(run, createWatch(), options, io);
  }
  if (options["json"] === true) {
    io.stdout.write(`${jsonText(execution)}\n`);
    return EXIT.ok;
  }
  const style = styleFor(io.stdout, io, options["no-color"] === true);
  const document = execution.status === "FAILED" ? await documentOf(target, execution, io) : undefined;
  const workers = await workersFor(execution, target, io);
  for (const line of statusLines(execution, document, workers, style, io)) io.stdout.write(`${line}\n`);
  return EXIT.ok;
}

/** The document, for the lines of its steps; optional for a status. */
export async function documentOf(
  target: ServerTarget,
  { path, version }: ExecutionAnswer,
  io: CliIo,
): Promise<LocalPlaybook | undefined> {
  try {
    const input = { params: { path }, query: { version }, signal: io.signal };
    const { content } = await callServer(target, CATALOG_ROUTES.resource, input);
    return readDocument(content, `${path}@${version}`);
  } catch (error) {
    if (io.signal.aborted) throw error;
    return undefined;
  }
}

/** The workers, for the reasons why commands wait; optional for a status. */
async function workersFor(
  { commands = [] }: ExecutionAnswer,
  target: ServerTarget,
  io: CliIo,
): Promise<PoolItem[] | undefined> {
  if (commands.every(({ worker, status }) => worker !== null || status === "WAITING")) return undefined;
  try {
    return await listWorkers(target, io.signal);
  } catch (error) {
    if (io.signal.aborted) throw error;
    return undefined;
  }
}

function statusLines(
  execution: ExecutionAnswer,
  document: LocalPlaybook | undefined,
  workers: readonly PoolItem[] | undefined,
  style: Style,
  io: CliIo,
): string[] {
  const now = Date.parse(execution.started_at) + durationOf(execution, Date.now());
  return [...headLines(execution, style), ...bodyLines(execution, { document, workers, style, now, io })];
}

/** What the lines below the first ones are made of. */
export interface BodyContext extends StatusContext {
  document: LocalPlaybook | undefined;
  io: CliIo;
}

/** The steps of an execution, and why it failed, or what it does now. */
export function bodyLines(execution: ExecutionAnswer, { document, workers, style, now, io }: BodyContext): string[] {
  const row = rowOfExecution(execution);
  const lines: string[] = [];
  const view = {
    ...{ now, columns: io.stdout.columns ?? COLUMNS_DEFAULT, lines: LINES_MAX, style },
    cancelling: false,
  };
  const tree = treeLines(row, view);
  if (tree.length > 0) lines.push("", ...tree);
  const unreached = execution.steps.filter(isUnreached).length;
  if (unreached > 0) lines.push(style.dim(`− ${plural(unreached, "step")} not reached`));
  const details =
    execution.status === "FAILED"
      ? failureLines(row, document, style, serverLocation(execution.execution_id))
      : openLines(execution, { now, workers, style });
  if (details.length > 0) lines.push("", ...details);
  return lines;
}

function headLines(execution: ExecutionAnswer, style: Style): string[] {
  const { execution_id, path, version, status, progress, started_at, parent_execution_id } = execution;
  const isOver = execution.ended_at !== null;
  const time = ` ${isOver ? "after" : "for"} ${formatDuration(durationOf(execution, Date.now()))}`;
  const share = isOver ? "" : `, ${progress}%`;
  const caller = parent_execution_id === null ? starterOf(execution) : `, called by ${parent_execution_id}`;
  const labels = labelText(execution.labels ?? {});
  const lines = [
    `${style.strong(cleanText(path))} version ${version}  ${paintStatus(status, style)}${time}${share}`,
    style.dim(`execution ${execution_id}, started ${started_at}${caller}`),
  ];
  if (labels !== "") lines.push(style.dim(`labels ${cleanText(labels)}`));
  if (execution.paused !== undefined) lines.push(...pauseLines(execution, execution.paused, style));
  if (status === "CANCELLED" && execution.error !== null) lines.push(cleanText(execution.error.message));
  return lines;
}

/** Who or what started it; nothing where that is an operator, who may do everything. */
function starterOf({ started_by }: ExecutionAnswer): string {
  if (started_by === undefined || (started_by.kind === "user" && started_by.id === null)) return "";
  return cleanText(` by ${originText({ started_by })}`);
}

/** Since when it is paused, by whom and why, and how it goes on. */
function pauseLines(
  { execution_id }: ExecutionAnswer,
  { since, by, reason }: NonNullable<ExecutionAnswer["paused"]>,
  style: Style,
): string[] {
  const who = by === null ? "" : ` by ${cleanText(by)}`;
  const why = reason === null ? "" : `: ${cleanText(reason)}`;
  return [
    `paused ${formatDuration(Date.now() - Date.parse(since))} ago${who}${why}`,
    `  ${style.dim("next")}  flow resume ${execution_id}`,
  ];
}

/** The open commands, and what they wait for. */
function openLines(
  { commands = [], next_retry: retry, paused, waiting_for: waiting = [] }: ExecutionAnswer,
  { now, workers, style }: StatusContext,
): string[] {
  const reasons = new Set<string>();
  const lines = commands.slice(0, COMMANDS_SHOWN).map((command) => {
    const { step, iterations, worker, attempt, claimed_at, command_id } = command;
    const which = iterations === undefined ? "" : `[${rangeText(iterations)}]`;
    const since = claimed_at === null ? "" : ` for ${formatDuration(now - Date.parse(claimed_at))}`;
    const again = attempt > 1 ? `, attempt ${attempt}: a worker was lost` : "";
    const wait = command.status === "WAITING" ? waiting.find((one) => isOf(one, command)) : undefined;
    if (wait !== undefined)
      return `  ${cleanText(step)}${which}  ${waitText(wait, now)}  ${style.dim(`command ${command_id}`)}`;
    const isJudged = worker === null && workers !== undefined && paused === undefined;
    const reason = isJudged ? waitReason(command, workers) : undefined;
    if (reason?.isStuck) reasons.add(reason.text);
    const waitsFor = paused !== undefined ? " for the resumption" : " for a worker";
    const waits = `waits${reason === undefined ? waitsFor : `: ${cleanText(reason.text)}`}`;
    const where = worker === null ? waits : `with ${cleanText(worker)}${since}${again}`;
    return `  ${cleanText(step)}${which}  ${where}  ${style.dim(`command ${command_id}`)}`;
  });
  const rest = commands.length - lines.length;
  if (rest > 0) lines.push(`  and ${plural(rest, "more command")}`);
  if (lines.length > 0) lines.unshift(style.strong("now"));
  if (retry != null) lines.push(`  ${retryText(retry, now)}`);
  if (reasons.size > 0) {
    lines.push(
      `  ${style.dim("next")}  start such a worker ('flow workers --wide' shows those that there are), or cancel it`,
    );
  }
  return lines;
}

function isOf({ kind, step, iteration }: WaitingForAnswer, command: OpenCommandAnswer): boolean {
  return kind !== "retry" && step === command.step && (iteration ?? 0) === (command.iterations?.from ?? 0);
}

/** `waits until 2026-01-31T12:00:00.000Z, for 15m more`, `waits for signal 'paid' with key '4711'`. */
function waitText({ kind, name, key, due, approval_id: approvalId }: WaitingForAnswer, now: number): string {
  if (kind === "approval")
    return `waits for approval ${approvalId ?? ""} '${cleanText(name ?? "")}'${due === undefined ? "" : ` until ${due}`}`;
  const of = key === undefined ? "" : ` with key '${cleanText(key)}'`;
  const what = kind === "signal" ? ` for signal '${cleanText(name ?? "")}'${of}${due === undefined ? "" : ","}` : "";
  if (due === undefined) return `waits${what}`;
  const left = Date.parse(due) - now;
  return `waits${what} until ${due}, ${left > 0 ? `for ${formatDuration(left)} more` : "which has come"}`;
}

/** `load  task fetch, attempt 2 begins in 12.0s, after: 503 Service Unavailable`. */
function retryText({ step, task, iteration, at, run, error }: NextRetryAnswer, now: number): string {
  const which = iteration === undefined ? "" : `[${iteration}]`;
  const place = task === step ? "" : `task ${cleanText(task)}, `;
  const why = error === null ? "" : `, after: ${firstLine(error.message)}`;
  const left = Date.parse(at) - now;
  const when = left > 0 ? `begins in ${formatDuration(left)}` : "is about to begin";
  return `${cleanText(step)}${which}  ${place}attempt ${run} ${when}${why}`;
}

/** What the lines about an open execution need. */
interface StatusContext {
  now: number;
  /** Undefined if unknown, or if nothing waits for a worker. */
  workers: readonly PoolItem[] | undefined;
  style: Style;
}

function rangeText({ from, to }: { from: number; to: number }): string {
  return to === from + 1 ? String(from) : `${from}–${to - 1}`;
}

/** Open commands that are printed: a loop has thousands. */
const COMMANDS_SHOWN = 10;
