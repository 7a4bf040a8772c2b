import { loadConfig } from "../platform/config.ts";
import type { EventRecord } from "../schema/event-record.ts";
import { type CliInput, EXIT, textOption } from "./command.ts";
import { namedExecution } from "./execution-word.ts";
import { awayText, followEvents } from "./follow.ts";
import { eventPages, readExecution } from "./server-executions.ts";
import { serverTarget } from "./server-target.ts";
import { type Style, styleFor } from "./style.ts";
import { createTaskLines, type TaskLine } from "./task-lines.ts";
import { cleanText, jsonLine, plural } from "./text.ts";

/** `flow logs`: what the tasks of an execution wrote, as its events have it; with `--follow` until it has ended. */
export async function showLogs(input: CliInput): Promise<number> {
  const { options, io } = input;
  const target = await serverTarget(input, loadConfig(io.environment));
  const id = await namedExecution(input, target);
  const step = textOption(options, "step");
  const style = styleFor(io.stdout, io, options["no-color"] === true);
  const lines = createTaskLines();
  let isRead = true;
  // That it is no error is known to who started this command; here it is an end.
  io.stdout.once("error", () => {
    isRead = false;
  });
  const print = (records: readonly EventRecord[]) => {
    for (const line of records.flatMap((record) => lines.take(record))) {
      if (step !== undefined && line.step !== step) continue;
      io.stdout.write(`${options["json"] === true ? jsonLine(line) : lineText(line, style)}\n`);
    }
  };
  if (options["follow"] !== true) {
    for await (const records of eventPages(target, id, 0, io.signal)) {
      print(records);
      if (!isRead) break;
    }
    return EXIT.ok;
  }
  // A server that was never there is not waited for.
  await readExecution(target, id, io.signal);
  const onAway = (why: string | undefined) => io.stderr.write(`${cleanText(awayText(why))}\n`);
  try {
    for await (const records of followEvents(target, id, { signal: io.signal, onAway })) {
      print(records);
      if (!isRead) break;
    }
    return EXIT.ok;
  } catch (error) {
    // Ctrl-C is the way to end it.
    if (io.signal.aborted) return EXIT.cancelled;
    throw error;
  }
}

/** `step  text`, with the iteration and, where it has another name, the task; on one line whatever the task wrote. */
export function lineText({ step, task, iteration, text, missing }: TaskLine, style: Style): string {
  const index = iteration === undefined ? "" : `[${iteration}]`;
  const place = `${cleanText(step)}${index}${task === step ? "" : `/${cleanText(task)}`}`;
  const shown = missing === undefined ? cleanText(text ?? "") : style.dim(`… ${plural(missing, "line")} not kept`);
  return `${style.dim(place)}  ${shown}`;
}
