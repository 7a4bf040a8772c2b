import { setTimeout as delay } from "node:timers/promises";
import { loadConfig } from "../../platform/config/config.ts";
import type { ExecutionItem } from "../../schema/api/executions.ts";
import { EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import type { EventRecord } from "../../schema/rules/event-record.ts";
import { type CliInput, type CliValues, EXIT, textOption } from "../command-line/command.ts";
import { createTaskLines, type TaskLine } from "../progress/task-lines.ts";
import { callServer } from "../server/client.ts";
import { eventPages } from "../server/executions-api.ts";
import { everyItem } from "../server/paginate.ts";
import { type ServerTarget, serverTarget } from "../server/target.ts";
import { type Style, styleFor } from "../terminal/style.ts";
import { cleanText, jsonLine, plural } from "../terminal/text.ts";
import { executionArgument } from "../watch/execution-id.ts";
import { followEvents } from "../watch/follow.ts";

/** Sub-playbooks that one look lists. */
const CHILDREN_PAGE = 200;
/** Time between two looks for sub-playbooks that have begun. */
const LOOK_MS = 1_000;
/** Sub-playbooks of one execution that are followed at a time; the others' lines are printed when it has ended. */
const FOLLOWED_MAX = 8;

/** `flow logs`: what the tasks of an execution and of its sub-playbooks wrote; with `--follow` until it has ended. */
export async function showLogs(input: CliInput): Promise<number> {
  const { options, io } = input;
  const target = await serverTarget(input, loadConfig(io.environment));
  const id = await executionArgument(input, target);
  const log = openLog(input);
  if (options["follow"] !== true) {
    await readLog({ id, above: [] }, { target, log, signal: io.signal });
    log.end();
    return EXIT.ok;
  }
  // Fails at once if the server cannot be reached at the start.
  await callServer(target, EXECUTION_ROUTES.detail, { params: { execution_id: id }, signal: io.signal });
  try {
    const onNotice = (text: string) => io.stderr.write(`${cleanText(text)}\n`);
    await followLog({ id, above: [] }, { target, log, signal: io.signal, onNotice });
    log.end();
    return EXIT.ok;
  } catch (error) {
    // Ctrl-C ends it.
    if (io.signal.aborted) return EXIT.cancelled;
    throw error;
  }
}

/** An execution whose lines are printed, and the paths that lead to it from the requested one. */
interface Source {
  id: string;
  above: readonly string[];
}

/** Where lines are printed. */
interface Log {
  print(source: Source, lines: readonly TaskLine[]): void;
  /** False after the reader closed the pipe: `flow logs … | head`. */
  isRead(): boolean;
  /** Prints a note if no task wrote anything. */
  end(): void;
}

function openLog({ options, io }: CliInput): Log {
  const style = styleFor(io.stdout, io, options["no-color"] === true);
  const isJson = options["json"] === true;
  let isRead = true;
  let count = 0;
  // A closed pipe ends the output; it is not an error.
  io.stdout.once("error", () => {
    isRead = false;
  });
  return {
    isRead: () => isRead,
    print({ id, above }, lines) {
      const about = above.length === 0 ? {} : { execution_id: id, path: above.at(-1) };
      const prefix = above.map((path) => style.dim(`${cleanText(path)} › `)).join("");
      for (const line of lines.filter(({ step }) => isWanted(step, above, options))) {
        count += 1;
        io.stdout.write(`${isJson ? jsonLine({ ...line, ...about }) : `${prefix}${lineText(line, style)}`}\n`);
      }
    },
    end() {
      if (count > 0 || !isRead) return;
      const step = textOption(options, "step");
      io.stderr.write(`nothing was written${step === undefined ? "" : ` by step '${cleanText(step)}'`}\n`);
    },
  };
}

/** `--step` selects a step of the named execution, not of its sub-playbooks. */
function isWanted(step: string, above: readonly string[], options: CliValues): boolean {
  const stepName = textOption(options, "step");
  return stepName === undefined || (above.length === 0 && step === stepName);
}

interface Reading {
  target: ServerTarget;
  log: Log;
  signal: AbortSignal;
}

/** Prints the stored lines: first the execution's own, then each sub-playbook's, in order of their start. */
async function readLog(source: Source, reading: Reading): Promise<void> {
  const { target, log, signal } = reading;
  const lines = createTaskLines();
  for await (const records of eventPages(target, source.id, 0, signal)) {
    log.print(source, linesOf(records, lines));
    if (!log.isRead()) return;
  }
  for await (const child of childrenOf(source, reading)) {
    if (!log.isRead()) return;
    await readLog(child, reading);
  }
}

/** Prints lines as they arrive, mixed with those of running sub-playbooks. */
async function followLog(source: Source, reading: Reading & { onNotice?: (text: string) => void }): Promise<void> {
  const { target, log, onNotice = () => undefined } = reading;
  const over = new AbortController();
  const signal = AbortSignal.any([reading.signal, over.signal]);
  const known = new Set<string>();
  const running = new Set<Promise<void>>();
  const follow = (child: Source) => {
    known.add(child.id);
    // Errors with one sub-playbook are ignored, so that the others' lines still appear.
    const following = followLog(child, { target, log, signal: reading.signal })
      .catch(() => undefined)
      .finally(() => running.delete(following));
    running.add(following);
  };
  const look = async () => {
    const query = { parent_execution_id: source.id, status: "RUNNING,PAUSED", limit: CHILDREN_PAGE };
    const { executions } = await callServer(target, EXECUTION_ROUTES.list, { query, signal });
    for (const child of executions.reverse()) {
      if (running.size < FOLLOWED_MAX && !known.has(child.execution_id)) follow(childOf(source, child));
    }
  };
  const looking = (async () => {
    while (!signal.aborted) {
      await look().catch(() => undefined);
      await delay(LOOK_MS, undefined, { signal }).catch(() => undefined);
    }
  })();
  try {
    const lines = createTaskLines();
    for await (const records of followEvents(target, source.id, { signal: reading.signal, onNotice })) {
      log.print(source, linesOf(records, lines));
      if (!log.isRead()) return;
    }
    over.abort();
    await looking;
    await Promise.all(running);
    // Those that began and ended between two looks, or exceeded the limit.
    for await (const child of childrenOf(source, reading)) if (!known.has(child.id)) await readLog(child, reading);
  } finally {
    over.abort();
    await looking;
  }
}

/** The executions that one has called, oldest first. */
async function* childrenOf(source: Source, { target, signal }: Reading): AsyncGenerator<Source> {
  const query = { parent_execution_id: source.id };
  const found = await everyItem(target, EXECUTION_ROUTES.list, { query, signal }, (page) => page.executions);
  // They come newest first.
  yield* found.reverse().map((child) => childOf(source, child));
}

function childOf({ above }: Source, { execution_id, path }: ExecutionItem): Source {
  return { id: execution_id, above: [...above, path] };
}

function linesOf(records: readonly EventRecord[], lines: ReturnType<typeof createTaskLines>): TaskLine[] {
  return records.flatMap((record) => lines.take(record));
}

/** `step  text`, with the iteration and, where it has another name, the task; always one line. */
export function lineText({ step, task, iteration, text, missing }: TaskLine, style: Style): string {
  const index = iteration === undefined ? "" : `[${iteration}]`;
  const place = `${cleanText(step)}${index}${task === step ? "" : `/${cleanText(task)}`}`;
  const shown = missing === undefined ? cleanText(text ?? "") : style.dim(`… ${plural(missing, "line")} not kept`);
  return `${style.dim(place)}  ${shown}`;
}
