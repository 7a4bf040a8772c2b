import { createHash } from "node:crypto";
import { once } from "node:events";
import { CATALOG_ROUTES } from "../../schema/routes/catalog.ts";
import { EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import { RESULT_ROUTES } from "../../schema/routes/results.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import { RECORD_VERSION, type RecordedPayload, type RecordHeader } from "../../testing/recorded-run.ts";
import { type CliInput, type CliIo, EXIT, textOption } from "../command-line/command.ts";
import { openAnswer } from "../server/client.ts";
import { eventPages } from "../server/executions-api.ts";
import { openServer } from "../server/open-server.ts";
import type { ServerTarget } from "../server/target.ts";
import { jsonLine } from "../terminal/text.ts";
import { executionArgument } from "../watch/execution-id.ts";

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
      collectRefs(record as Json, refs);
      await writeLine(io, record);
    }
  }
  let left = 0;
  for (const ref of refs) {
    const payload = await payloadOf(target, ref, bytesMax, io);
    if (payload !== undefined) await writeLine(io, payload);
    if (payload?.payload === undefined) left += 1;
  }
  if (left > 0)
    io.stderr.write(`${left} of ${refs.size} stored results were left out: over ${bytesMax} bytes, or gone\n`);
  if (ended_at === null) io.stderr.write("The run has not ended: the record has its events until now\n");
  return EXIT.ok;
}

function bytesOf(text: string | undefined): number {
  if (text === undefined) return BYTES_MAX_DEFAULT;
  const bytes = Number(text);
  if (/^\d+$/.test(text) && bytes <= BYTES_MAX) return bytes;
  throw new FlowError("USAGE", `--max-bytes takes a number of bytes, ${BYTES_MAX} at most; got '${text}'`);
}

/** At the reader's speed: a log may be longer than the memory. */
async function writeLine({ stdout, signal }: CliIo, value: unknown): Promise<void> {
  signal.throwIfAborted();
  if (stdout.write(`${jsonLine(value)}\n`)) return;
  await Promise.race([once(stdout, "drain"), once(stdout, "close")]).catch(() => undefined);
}

const REF = /^noetl:\/\/execution\//;

/** The references in an event: of results, of the parts of loops and of manifests. */
function collectRefs(value: Json, refs: Set<string>): void {
  if (typeof value === "string") {
    if (REF.test(value)) refs.add(value);
  } else if (Array.isArray(value)) {
    for (const item of value) collectRefs(item, refs);
  } else if (typeof value === "object" && value !== null) {
    for (const item of Object.values(value)) collectRefs(item, refs);
  }
}

/** A stored result; without its payload where it is too large. Undefined if it is gone. */
async function payloadOf(
  target: ServerTarget,
  ref: string,
  bytesMax: number,
  { signal }: CliIo,
): Promise<RecordedPayload | undefined> {
  try {
    const { parts } = await openAnswer(target, RESULT_ROUTES.resolveApi, { query: { ref }, signal });
    const hash = createHash("sha256");
    const kept: Uint8Array[] = [];
    let bytes = 0;
    for await (const part of parts) {
      hash.update(part);
      bytes += part.byteLength;
      if (bytes <= bytesMax) kept.push(part);
      else kept.length = 0;
    }
    const line = { ref, bytes, sha256: hash.digest("hex") };
    if (bytes > bytesMax) return line;
    return { ...line, payload: JSON.parse(Buffer.concat(kept).toString("utf8")) as Json };
  } catch (error) {
    if (error instanceof FlowError && GONE.has(error.code)) return undefined;
    throw error;
  }
}

const GONE: ReadonlySet<string> = new Set(["NOT_FOUND", "REFERENCE_NOT_AVAILABLE"]);
