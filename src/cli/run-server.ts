import { type CliInput, EXIT, textOption } from "./command.ts";
import { filesRead, readInputs } from "./inputs.ts";
import { hasTree } from "./open-progress.ts";
import { createRecorder } from "./record.ts";
import { executeOnServer } from "./server-executions.ts";
import { serverPlaybook } from "./server-playbook.ts";
import type { ServerTarget } from "./server-target.ts";
import { pageAddress, watchOnServer } from "./server-watch.ts";
import { writeWarnings } from "./summary.ts";
import { checkTarget } from "./target-step.ts";
import { cleanText, jsonText } from "./text.ts";
import { createWatch } from "./watched-run.ts";

/**
 * Runs one playbook on a server and waits for its outcome, which is told as that of a local run. Gives the exit code; throws
 * `FlowError` for what keeps the run from beginning, and SERVER_UNREACHABLE when it goes on out of sight.
 */
export async function runOnServer(input: CliInput, target: ServerTarget): Promise<number> {
  const { options, io } = input;
  const quiet = options["quiet"] === true;
  const inputs = await readInputs(options, io.folder);
  const watch = createWatch();
  const named = { version: textOption(options, "version"), quiet };
  const playbook = await serverPlaybook(target, input.arguments[0] ?? "", named, io);
  const { document, file, catalogId, kind } = playbook;
  const step = textOption(options, "target");
  if (document !== undefined) {
    checkTarget(document, step);
    writeWarnings(document.warnings, io);
  }
  const record = textOption(options, "record");
  if (record !== undefined) watch.recorder = createRecorder(record, io.folder, filesRead(file, options, io.folder));
  // Interrupted while it is being started, it is to be cancelled and not forgotten: the answer is waited for.
  const { signal: patient } = new AbortController();
  const body = {
    catalog_id: catalogId,
    resource_kind: kind,
    workload: inputs,
    ...(step !== undefined && { target: step }),
  };
  const started = await executeOnServer(target, body, patient);
  const startedAt = Date.now();
  const id = started.execution_id;
  const what = `${playbook.path} version ${playbook.version}, execution ${id}`;
  for (const warning of started.warnings ?? []) io.stderr.write(`${cleanText(`warning: ${warning}`)}\n`);
  if (!quiet) {
    io.stderr.write(`${cleanText(`running at ${target.url} (${target.origin}): ${what}`)}\n`);
    if (options["detach"] === true || !hasTree(io)) io.stderr.write(`page: ${cleanText(pageAddress(target, id))}\n`);
  }
  if (options["detach"] !== true) {
    return await watchOnServer(
      { target, executionId: id, document, startedAt, cancelOnStop: true },
      watch,
      options,
      io,
    );
  }
  io.stdout.write(options["json"] === true ? `${jsonText(started)}\n` : `${id}\n`);
  return EXIT.ok;
}
