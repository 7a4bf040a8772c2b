import type { Database } from "../../../repositories/database/database.ts";
import {
  findCommand,
  findIssue,
  type IssuedBody,
  listTaskRuns,
} from "../../../repositories/executions/command-runs.ts";
import type { RenderedAnswer } from "../../../schema/api/rendered.ts";
import { fromRecord } from "../../../schema/rules/event-record.ts";
import type { Command } from "../../../schema/words/command.ts";
import { defined } from "../../../schema/words/defined.ts";
import { FlowError } from "../../../schema/words/errors.ts";
import type { CommandProgram } from "../../orchestration/memory/program-cache.ts";
import { renderCommand } from "./render-command.ts";
import type { Done } from "./replay-pipeline.ts";

/** The requested command of an execution. */
export interface RenderedRequest {
  commandId: string;
  /** Iteration of a loop; undefined: the command's first. */
  iteration: number | undefined;
  /** Claim of the command; undefined: the newest. */
  attempt: number | undefined;
}

/** What {@link renderedValues} needs. */
export interface RenderedDeps {
  database: Database;
  programs(catalogId: string): Promise<CommandProgram>;
  /** A command that has no row any more, from the log. */
  ended(issue: { executionId: string; commandId: string; issuedId: number }): Promise<Command | undefined>;
}

/**
 * Rendered templates of a command, from the command as issued and from the results of its tasks in the log. An open command has
 * a row; one that has ended is made again from the events before it ({@link RenderedDeps.ended}). After its issue at most
 * 20,000 events are read, however long the log is: later results are reported as unknown. Throws `FlowError` NOT_FOUND for a
 * command of another execution, and for one that has too many events before it; INVALID_INPUT for an iteration or an attempt
 * that does not exist.
 */
export async function renderedValues(
  { database, programs, ended }: RenderedDeps,
  executionId: string,
  request: RenderedRequest,
): Promise<RenderedAnswer> {
  const { commandId } = request;
  const issued =
    (await findCommand(database, commandId)) ?? (await endedCommand({ database, ended }, executionId, commandId));
  if (issued === undefined || issued.executionId !== executionId) {
    const message = `Execution ${executionId} has no command ${commandId}: its events name those that it has`;
    throw new FlowError("NOT_FOUND", message);
  }
  const iteration = iterationOf(issued, request);
  const attempt = attemptOf(issued, request);
  const { program } = await programs(issued.body.catalog_id);
  // An iteration that ended before its command was claimed again is not run again.
  const claim = iteration === undefined ? attempt : request.attempt;
  const records = await listTaskRuns(database, { executionId, commandId, attempt: claim, iteration });
  const done = records.map(fromRecord).filter((event): event is Done => event.type === "task.done");
  return {
    command_id: commandId,
    step: issued.body.step,
    attempt: done[0]?.attempt ?? attempt,
    ...defined({ iteration }),
    tasks: renderCommand({ program, command: issued.body, iteration, done }),
  };
}

async function endedCommand(
  { database, ended }: Pick<RenderedDeps, "database" | "ended">,
  executionId: string,
  commandId: string,
): Promise<IssuedBody | undefined> {
  const issue = await findIssue(database, executionId, commandId);
  if (issue === undefined) return undefined;
  const body = await ended({ executionId, commandId, issuedId: issue.eventId });
  return body && { executionId, attempt: issue.attempt, body };
}

function iterationOf({ body }: IssuedBody, { commandId, iteration }: RenderedRequest): number | undefined {
  const { loop } = body;
  if (loop === undefined) {
    if (iteration === undefined) return undefined;
    throw new FlowError("INVALID_INPUT", `Command ${commandId} is of no loop: ask about it without an iteration`);
  }
  const last = loop.from + loop.items.length - 1;
  const index = iteration ?? loop.from;
  if (index >= loop.from && index <= last) return index;
  const message = `Command ${commandId} has the iterations ${loop.from} to ${last}, and not ${index}`;
  throw new FlowError("INVALID_INPUT", message);
}

function attemptOf(issued: IssuedBody, { commandId, attempt = issued.attempt }: RenderedRequest): number {
  if (attempt <= issued.attempt && (attempt > 0 || issued.attempt === 0)) return attempt;
  const claims = issued.attempt === 0 ? "was not claimed yet" : `was claimed ${issued.attempt} times`;
  throw new FlowError("INVALID_INPUT", `Command ${commandId} ${claims}: there is no attempt ${attempt}`);
}
