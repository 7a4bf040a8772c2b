import { EXIT } from "./cli/command.ts";
import { runCli } from "./cli/main.ts";

/** How long leftovers (a connection that does not close) may keep the process once its work is done. */
const LINGER_MS = 2_000;

const stop = new AbortController();
const interrupt = () => {
  // The second time somebody means it: leave without waiting for tools. Their own exit hooks still put things in order.
  if (stop.signal.aborted) process.exit(EXIT.cancelled);
  stop.abort();
};
process.on("SIGINT", interrupt);
process.on("SIGTERM", interrupt);

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // A reader that has seen enough (`flow … | head`) is no error, and the work goes on to its own exit code.
  if (error.code === "EPIPE") return;
  process.stderr.write(`flow: cannot write to standard output: ${error.message}\n`);
  process.exit(EXIT.failed);
});
// Nobody is left to tell.
process.stderr.on("error", () => undefined);

process.exitCode = await runCli(process.argv.slice(2), {
  stdout: process.stdout,
  stderr: process.stderr,
  environment: process.env,
  folder: process.cwd(),
  signal: stop.signal,
});
setTimeout(() => process.exit(), LINGER_MS).unref();
