import { defined } from "../../schema/words/defined.ts";
import type { CliIo, CliValues } from "../command-line/command.ts";
import { styleFor } from "../terminal/style.ts";
import { createLineProgress } from "./lines.ts";
import { createTreeProgress } from "./live-tree.ts";
import { NO_PROGRESS, type Progress } from "./progress.ts";
import type { RunModel } from "./run-model.ts";

/** Size of a terminal that does not report its own. */
const COLUMNS_DEFAULT = 80;
const ROWS_DEFAULT = 24;

/** What is known of a run besides its events. */
export interface ProgressOptions {
  /** The clock of the events' writer, milliseconds since 1970, if known. */
  now?: () => number;
  /** The page's address of the run, on a server. */
  address?: string;
}

/**
 * The progress that fits standard error: a live tree on a terminal that can move its cursor, lines elsewhere, nothing with
 * `--quiet`.
 */
export function openProgress(
  model: RunModel,
  options: CliValues,
  io: CliIo,
  { now = Date.now, address }: ProgressOptions = {},
): Progress {
  if (options["quiet"] === true) return NO_PROGRESS;
  const verbose = options["verbose"] === true;
  const { stderr } = io;
  if (!hasTree(io)) {
    return createLineProgress(model, verbose, (line) => stderr.write(`${line}\n`));
  }
  return createTreeProgress(model, {
    terminal: {
      write: (text) => stderr.write(text),
      columns: () => stderr.columns || COLUMNS_DEFAULT,
      rows: () => stderr.rows || ROWS_DEFAULT,
    },
    style: styleFor(stderr, io, options["no-color"] === true),
    verbose,
    now,
    ...defined({ address }),
    every(ms, task) {
      // A run that waits for nothing else must not be kept alive by its picture.
      const timer = setInterval(task, ms).unref();
      return () => clearInterval(timer);
    },
  });
}

/** True where a run is shown as a tree. */
export function hasTree({ stderr, environment }: CliIo): boolean {
  return stderr.isTTY === true && environment["TERM"] !== "dumb";
}
