import { type CliIo, EXIT } from "../command-line/command.ts";
import { NO_PROGRESS, type Progress } from "../progress/progress.ts";
import { createRunModel, type RunModel } from "../progress/run-model.ts";
import { cleanText } from "../terminal/text.ts";
import type { Recorder } from "./record.ts";

/** What observes a run. */
export interface Watch {
  model: RunModel;
  progress: Progress;
  recorder: Recorder | undefined;
}

/** An empty model, without progress or recorder. */
export function createWatch(): Watch {
  return { model: createRunModel(), progress: NO_PROGRESS, recorder: undefined };
}

/**
 * Performs a watched run, and restores the terminal and completes the event log however it ends. `run` resolves at the end of
 * the run with a function that prints the outcome and returns the exit code. With `cancelOnStop` the progress shows that
 * Ctrl-C cancels the run; otherwise Ctrl-C only ends the watching.
 */
export async function runWatched(
  watch: Watch,
  io: CliIo,
  run: () => Promise<() => number>,
  cancelOnStop = true,
): Promise<number> {
  const putInOrder = () => {
    watch.progress.stop();
    return watch.recorder?.close();
  };
  const cancelling = () => watch.progress.cancelling();
  // The second Ctrl-C exits without returning here: the exit handler shows the cursor and completes the log.
  process.once("exit", putInOrder);
  if (cancelOnStop) io.signal.addEventListener("abort", cancelling, { once: true });
  try {
    const print = await run();
    const incomplete = putInOrder();
    const code = print();
    if (incomplete === undefined) return code;
    io.stderr.write(`flow: ${cleanText(incomplete.message)}\n`);
    return code === EXIT.ok ? EXIT.failed : code;
  } finally {
    io.signal.removeEventListener("abort", cancelling);
    process.off("exit", putInOrder);
    putInOrder();
  }
}
