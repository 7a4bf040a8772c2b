import { setMaxListeners } from "node:events";
import { type CliIo, EXIT } from "./cli/command-line/command.ts";
import { runCli } from "./cli/main.ts";
import { printError } from "./cli/print-error.ts";
import { inheritedEnvironment } from "./platform/config/config.ts";
import { FlowError } from "./schema/words/errors.ts";

/** How long leftovers (a connection that does not close) may keep the process once its work is done. */
const LINGER_MS = 2_000;

const stop = new AbortController();
// Every execution listens to it, children too. Node takes eleven for a leak and would print a warning through the tree.
setMaxListeners(0, stop.signal);
const interrupt = (signal: NodeJS.Signals) => {
  // The second Ctrl-C: exit without waiting for tools. Their own exit hooks still clean up.
  if (stop.signal.aborted) process.exit(EXIT.cancelled);
  stop.abort(new FlowError("CANCELLED", `interrupted by ${signal}`));
};
process.on("SIGINT", interrupt);
process.on("SIGTERM", interrupt);
// The terminal was closed: tools are to be stopped all the same.
process.on("SIGHUP", interrupt);

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // A reader that has seen enough (`flow … | head`) is no error, and the work goes on to its own exit code.
  if (error.code === "EPIPE") return;
  process.stderr.write(`flow: cannot write to standard output: ${error.message}\n`);
  process.exit(EXIT.failed);
});
// There is no output left to write the message to.
process.stderr.on("error", () => undefined);

const io: CliIo = {
  stdout: process.stdout,
  stderr: process.stderr,
  // Its getter opens the terminal or the pipe, and costs a run that asks nothing some milliseconds.
  get stdin() {
    return process.stdin;
  },
  environment: inheritedEnvironment(),
  folder: process.cwd(),
  signal: stop.signal,
};
// An error outside any promise (an event without a listener) is printed like any other, and ends the process.
process.on("uncaughtException", (error) => process.exit(printError(error, io)));

process.exitCode = await runCli(process.argv.slice(2), io);
setTimeout(() => process.exit(), LINGER_MS).unref();
