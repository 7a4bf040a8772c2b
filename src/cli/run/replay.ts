import { createFileCatalog, type LocalPlaybook } from "../../local/catalog.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import { type RecordedRun, readRecordedRun } from "../../testing/recorded-run.ts";
import { type ReplayOutcome, replayRun } from "../../testing/replay.ts";
import { type CliInput, type CliIo, EXIT, textOption } from "../command-line/command.ts";
import { loadNamed } from "../documents/named-playbook.ts";
import { type Style, styleFor } from "../terminal/style.ts";
import { cleanText, jsonLine, jsonText, plural } from "../terminal/text.ts";
import { readDocument } from "../watch/server-playbook.ts";

/** Longest value that is printed, in characters. */
const VALUE_MAX = 300;

/**
 * `flow replay`: decides a recorded run again, by the engine alone, with its own document or another version. Exit code 0 when it goes
 * the same way, 1 when it does not, 2 when the record or the document cannot be read.
 */
export async function replay({ arguments: files, options, io }: CliInput): Promise<number> {
  const outcomes: { file: string; outcome: ReplayOutcome }[] = [];
  for (const file of files) {
    const run = await readRecordedRun(file, io.folder);
    const { program } = await playbookOf(run, textOption(options, "playbook"), io);
    outcomes.push({ file, outcome: await replayRun(run, program) });
    io.signal.throwIfAborted();
  }
  if (options["json"] === true) io.stdout.write(`${jsonText({ runs: outcomes.map(answerOf) })}\n`);
  else {
    const style = styleFor(io.stdout, io, options["no-color"] === true);
    for (const one of outcomes) for (const line of linesOf(one, style)) io.stdout.write(`${line}\n`);
  }
  return outcomes.some(({ outcome }) => outcome.difference !== undefined) ? EXIT.failed : EXIT.ok;
}

/** The document that was named, else that of the record. */
async function playbookOf(run: RecordedRun, named: string | undefined, io: CliIo): Promise<LocalPlaybook> {
  if (named !== undefined) return await loadNamed(createFileCatalog(), named, io);
  const { header, file } = run;
  const hint = "Name its playbook: --playbook FILE";
  if (header?.playbook === undefined) {
    throw new FlowError("USAGE", `${file} has no document: 'flow run --record' writes events alone. ${hint}`);
  }
  const document = readDocument(header.playbook, `${header.path}@${header.version}`);
  if (document !== undefined) return document;
  throw new FlowError("FILE_UNREADABLE", `The document in ${file} is not a playbook that this version knows. ${hint}`);
}

function answerOf({ file, outcome: { events, difference } }: { file: string; outcome: ReplayOutcome }): object {
  if (difference === undefined) return { file, same: true, events };
  const { eventId, what, path, recorded, replayed } = difference;
  return {
    ...{ file, same: false, events },
    difference: { event_id: eventId, what, path, recorded: recorded ?? null, replayed: replayed ?? null },
  };
}

function linesOf({ file, outcome }: { file: string; outcome: ReplayOutcome }, style: Style): string[] {
  const { events, difference } = outcome;
  const name = cleanText(file);
  if (difference === undefined)
    return [`${style.good("✓")} ${name} goes the same way ${style.dim(`(${plural(events, "event")})`)}`];
  const { eventId, what, path, recorded, replayed } = difference;
  const where = path === "" ? "" : ` at ${style.strong(cleanText(path))}`;
  return [
    `${style.bad("✗")} ${name} goes another way ${style.dim(`(after ${plural(events, "event")} that are the same)`)}`,
    `  ${cleanText(what)}${where}, event ${eventId}`,
    `    recorded  ${shown(recorded)}`,
    `    replayed  ${shown(replayed)}`,
  ];
}

function shown(value: Json | undefined): string {
  if (value === undefined) return "nothing";
  const text = jsonLine(value);
  return text.length > VALUE_MAX ? `${text.slice(0, VALUE_MAX)}…` : text;
}
