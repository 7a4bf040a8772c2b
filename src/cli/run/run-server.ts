import { defined } from "../../schema/words/defined.ts";
import { type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { filesRead, labelsOf, readInputs } from "../documents/inputs.ts";
import { checkTarget } from "../documents/named-playbook.ts";
import { hasTree } from "../progress/open-progress.ts";
import { executeOnServer } from "../server/executions-api.ts";
import type { ServerTarget } from "../server/target.ts";
import { cleanText, jsonText } from "../terminal/text.ts";
import { createRecorder } from "../watch/record.ts";
import { resolvePlaybook } from "../watch/server-playbook.ts";
import { writeWarnings } from "../watch/summary.ts";
import { pageAddress, watchOnServer } from "../watch/watch.ts";
import { createWatch } from "../watch/watched-run.ts";

/**
 * Runs one playbook on a server, waits for its outcome and prints it like that of a local run. Returns the exit code. Throws
 * `FlowError` if the run cannot start, and SERVER_UNREACHABLE when the connection is lost.
 */
export async function runOnServer(input: CliInput, target: ServerTarget): Promise<number> {
  const { options, io } = input;
  const quiet = options["quiet"] === true;
  const inputs = await readInputs(options, io.folder);
  const watch = createWatch();
  const named = { version: textOption(options, "version"), quiet };
  const word = input.arguments[0] ?? "";
  const draft = options["draft"] === true ? await import("./run-draft.ts") : undefined;
  const playbook = draft ? await draft.readDraft(word, io) : await resolvePlaybook(target, word, named, io);
  const { document, file } = playbook;
  const step = textOption(options, "target");
  if (document !== undefined) {
    checkTarget(document, step);
    writeWarnings(document.warnings, io);
  }
  const record = textOption(options, "record");
  if (record !== undefined) watch.recorder = createRecorder(record, io.folder, filesRead(file, options, io.folder));
  // After an interrupt during the start, the answer is awaited, so that the execution can be cancelled.
  const { signal: patient } = new AbortController();
  const asked = { workload: inputs, target: step, ...defined({ labels: labelsOf(options) }) };
  const started =
    draft && "content" in playbook
      ? await draft.startDraft(input, target, playbook, asked, patient)
      : "catalogId" in playbook &&
        (await executeOnServer(
          target,
          { body: { catalog_id: playbook.catalogId, resource_kind: playbook.kind, ...asked } },
          patient,
        ));
  if (!started) return EXIT.ok;
  const startedAt = Date.now();
  const id = started.execution_id;
  const what = `${playbook.path} ${playbook.version === 0 ? "as a draft" : `version ${playbook.version}`}, execution ${id}`;
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
