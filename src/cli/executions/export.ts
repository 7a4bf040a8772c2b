import { once } from "node:events";
import { CATALOG_ROUTES } from "../../schema/routes/catalog.ts";
import { EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { RECORD_VERSION, type RecordHeader } from "../../testing/recorded-run.ts";
import { type CliInput, type CliIo, EXIT, textOption } from "../command-line/command.ts";
import { eventPages } from "../server/executions-api.ts";
import { openServer } from "../server/open-server.ts";
import { jsonLine } from "../terminal/text.ts";
import { executionArgument } from "../watch/execution-id.ts";
import { payloadLine } from "../watch/record.ts";
import { collectRefs, readStored } from "../watch/stored-results.ts";

/** Largest result that is included when the caller does not say, in bytes. */
const BYTES_MAX_DEFAULT = 1_048_576;
/** Largest that may be asked for: a line of a record is one text. */
const BYTES_MAX = 256 * 1_048_576;

/**
 * `flow export`: a run as a file that can be replayed: its document, its events, and its results that are stored apart. Values that are
 * sensitive are `[secret]` in it, as the server shows them.
 */
export async function exportRun(input: CliInput): Promise<number> {
  const { options, io } = input;
  const bytesMax = bytesOf(textOption(options, "max-bytes"));
  const { target, call } = await openServer(input);
  const id = await executionArgument(input, target);
  const { path, version, ended_at } = await call(EXECUTION_ROUTES.detail, { params: { execution_id: id } });
  const { content } = await call(CATALOG_ROUTES.resource, { params: { path }, query: { version: String(version) } });
  const header: RecordHeader = { flow_record: RECORD_VERSION, execution_id: id, path, version, playbook: content };
  await writeLine(io, header);
  const refs = new Set<string>();
  for await (const records of eventPages(target, id, 0, io.signal)) {
    for (const record of records) {
      collectRefs(record, refs);
      await writeLine(io, record);
    }
  }
  let left = 0;
  for (const ref of refs) {
    const stored = await readStored(target, ref, bytesMax, io.signal);
    if (stored === undefined || stored.json === undefined) left += 1;
    if (stored !== undefined) await writeText(io, payloadLine(stored));
  }
  if (left > 0)
    io.stderr.write(`${left} of ${refs.size} stored results were left out: over ${bytesMax} bytes, or gone\n`);
  if (ended_at === null) io.stderr.write("The run has not ended: the record has its events so far\n");
  return EXIT.ok;
}

function bytesOf(text: string | undefined): number {
  if (text === undefined) return BYTES_MAX_DEFAULT;
  const bytes = Number(text);
  if (/^\d+$/.test(text) && bytes <= BYTES_MAX) return bytes;
  throw new FlowError("USAGE", `--max-bytes takes a number of bytes, ${BYTES_MAX} at most; got '${text}'`);
}

async function writeLine(io: CliIo, value: unknown): Promise<void> {
  await writeText(io, jsonLine(value));
}

/** At the reader's speed: a log may be longer than the memory. */
async function writeText({ stdout, signal }: CliIo, line: string): Promise<void> {
  signal.throwIfAborted();
  if (stdout.write(`${line}\n`)) return;
  await Promise.race([once(stdout, "drain"), once(stdout, "close")]).catch(() => undefined);
}
