import { type CliIo, EXIT } from "../command-line/command.ts";
import { NO_PROGRESS, type Progress } from "../progress/progress.ts";
import { createRunModel, type RunModel } from "../progress/run-model.ts";
import { cleanText } from "../terminal/text.ts";
import type { Recorder } from "./record.ts";

/** Everybody who looks on while a run goes on. */
export interface Watch {
  model: RunModel;
  progress: Progress;
  recorder: Recorder | undefined;
}

/** Nobody looks on yet. */
export function createWatch(): Watch {
  return { model: createRunModel(), progress: NO_PROGRESS, recorder: undefined };
}

/**
 * Carries out a run that is watched, and puts the terminal and the event log in order after it, however it ends. `run`
 * resolves when the run is over, with the function that prints its outcome and gives the exit code. Ctrl-C is told to cancel it
 * unless it only ends the watching.
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
  // The second Ctrl-C leaves without coming back here: the cursor is to be shown and the log to be complete all the same.
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
