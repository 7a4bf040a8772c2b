import type { ExecutionAnswer, ExecutionStateAnswer } from "../../schema/api/executions.ts";
import { EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import { type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { openServer } from "../server/open-server.ts";
import { type Style, styleFor } from "../terminal/style.ts";
import { cleanText, formatDuration, jsonLine, jsonText } from "../terminal/text.ts";
import { executionArgument } from "../watch/execution-id.ts";
import { paintStatus } from "./executions.ts";
import { bodyLines, documentOf } from "./status.ts";

/** Longest value of a variable that is printed, in characters. */
const VALUE_MAX = 200;

/** `flow show`: an execution as it was after one of its events. */
export async function showPast(input: CliInput): Promise<number> {
  const { options, io } = input;
  const { target, call } = await openServer(input);
  const id = await executionArgument(input, target);
  const at = textOption(options, "at");
  const params = { execution_id: id };
  const state = await call(EXECUTION_ROUTES.state, { params, query: at === undefined ? {} : { at } });
  if (options["json"] === true) {
    io.stdout.write(`${jsonText(state)}\n`);
    return EXIT.ok;
  }
  const now = await call(EXECUTION_ROUTES.detail, { params });
  const execution = pastExecution(now, state);
  const style = styleFor(io.stdout, io, options["no-color"] === true);
  const document = state.status === "FAILED" ? await documentOf(target, execution, io) : undefined;
  const body = bodyLines(execution, { document, workers: undefined, style, now: Date.parse(state.at), io });
  for (const line of [...headLines(execution, state, style), ...body, ...variableLines(state, style)]) {
    io.stdout.write(`${line}\n`);
  }
  return EXIT.ok;
}

/** The execution's answer as it would have been then. */
function pastExecution(now: ExecutionAnswer, state: ExecutionStateAnswer): ExecutionAnswer {
  const { status, progress, ended_at, error, workload, steps, arcs, commands, next_retry, paused } = state;
  const { paused: _paused, ...same } = now;
  const past = { ...same, status, progress, ended_at, error, workload, steps, arcs, commands };
  const duration_ms = ended_at === null ? null : Date.parse(ended_at) - Date.parse(now.started_at);
  return { ...past, duration_ms, next_retry, ...(paused !== undefined && { paused }) };
}

function headLines(execution: ExecutionAnswer, { at, event_id, status }: ExecutionStateAnswer, style: Style): string[] {
  const { path, version, started_at, execution_id, progress } = execution;
  const since = formatDuration(Math.max(0, Date.parse(at) - Date.parse(started_at)));
  return [
    `${style.strong(cleanText(path))} version ${version}  ${paintStatus(status, style)} ${since} after its start, ${progress}%`,
    style.dim(`execution ${execution_id} after event ${event_id}, ${at}`),
  ];
}

function variableLines({ variables }: ExecutionStateAnswer, style: Style): string[] {
  const lines = Object.entries(variables).map(([name, value]) => {
    const text = jsonLine(value);
    return `  ${cleanText(name)}  ${text.length > VALUE_MAX ? `${text.slice(0, VALUE_MAX)}…` : text}`;
  });
  return lines.length === 0 ? [] : ["", style.strong("variables"), ...lines];
}
