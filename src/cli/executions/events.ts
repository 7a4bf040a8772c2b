import { loadConfig } from "../../platform/config/config.ts";
import { EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import type { EventRecord } from "../../schema/rules/event-record.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, own } from "../../schema/words/json.ts";
import { type CliInput, type CliIo, type CliValues, EXIT, textOption } from "../command-line/command.ts";
import { limitOf } from "../command-line/list-options.ts";
import { firstLine } from "../progress/lines.ts";
import { progressText } from "../progress/text.ts";
import { callServer } from "../server/client.ts";
import { readEvents } from "../server/executions-api.ts";
import { type ServerTarget, serverTarget } from "../server/target.ts";
import { type Style, styleFor } from "../terminal/style.ts";
import { cleanText, formatDuration, jsonLine, padText } from "../terminal/text.ts";
import { executionArgument } from "../watch/execution-id.ts";
import { followEvents } from "../watch/follow.ts";

/** Events that are printed when the caller does not say. */
const LIMIT_DEFAULT = 1_000;
/** Events that one call asks for. */
const PAGE_MAX = 500;

/** `flow events`: the log of an execution, one line per event; with `--follow` until it has ended. */
export async function showEvents(input: CliInput): Promise<number> {
  const { options, io } = input;
  const after = afterOf(options);
  const limit = options["all"] === true ? Number.POSITIVE_INFINITY : limitOf(options, LIMIT_DEFAULT);
  const target = await serverTarget(input, loadConfig(io.environment));
  const id = await executionArgument(input, target);
  const printer = createPrinter(options, io);
  if (options["follow"] === true) return await follow(target, id, after, printer, input);
  const type = textOption(options, "type");
  const next = await listEvents(target, id, { after, limit, type }, printer, io);
  if (next !== undefined) io.stderr.write(`there are more: --after ${next} continues, --all prints the whole log\n`);
  return EXIT.ok;
}

interface Printer {
  print(records: readonly EventRecord[]): void;
  /** False after the reader closed the pipe: `flow events … | head`. */
  isRead(): boolean;
}

function createPrinter(options: CliValues, io: CliIo): Printer {
  const style = styleFor(io.stdout, io, options["no-color"] === true);
  let isRead = true;
  // A closed pipe ends the output; it is not an error.
  io.stdout.once("error", () => {
    isRead = false;
  });
  return {
    isRead: () => isRead,
    print(records) {
      for (const record of records) {
        io.stdout.write(`${options["json"] === true ? jsonLine(record) : eventLine(record, style)}\n`);
      }
    },
  };
}

function afterOf(options: CliValues): number {
  const text = textOption(options, "after") ?? "0";
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
  throw new FlowError("USAGE", `--after takes the id of an event, as the first column shows it; got '${text}'`);
}

/** Returns the id of the last printed event if there may be more. */
async function listEvents(
  target: ServerTarget,
  id: string,
  { after, type, limit }: { after: number; type: string | undefined; limit: number },
  printer: Printer,
  io: CliIo,
): Promise<number | undefined> {
  let last = after;
  for (let left = limit; left > 0 && printer.isRead(); ) {
    const page = Math.min(PAGE_MAX, left);
    const records = await readEvents(target, id, { after: last, limit: page, type }, io.signal);
    printer.print(records);
    last = records.at(-1)?.event_id ?? last;
    left -= records.length;
    if (records.length < page) return undefined;
  }
  return last;
}

async function follow(
  target: ServerTarget,
  id: string,
  after: number,
  printer: Printer,
  { options, io }: CliInput,
): Promise<number> {
  const type = textOption(options, "type");
  // Fails at once if the server cannot be reached at the start.
  await callServer(target, EXECUTION_ROUTES.detail, { params: { execution_id: id }, signal: io.signal });
  const onNotice = (text: string) => io.stderr.write(`${cleanText(text)}\n`);
  try {
    for await (const records of followEvents(target, id, { after, signal: io.signal, onNotice })) {
      printer.print(type === undefined ? records : records.filter(({ event_type }) => event_type === type));
      if (!printer.isRead()) break;
    }
    return EXIT.ok;
  } catch (error) {
    // Ctrl-C ends it.
    if (io.signal.aborted) return EXIT.cancelled;
    throw error;
  }
}

/** Columns of the event's type: that of the longest common one. */
const TYPE_WIDTH = 20;

/** `id  time  type  node  more`, always one line. */
export function eventLine(record: EventRecord, style: Style): string {
  const { event_id, created_at, event_type, node_id, node_name, node_type } = record;
  const node = node_type === "task" ? `${node_id}/${node_name}` : node_id;
  const type = padText(cleanText(event_type), TYPE_WIDTH);
  const paint = paintOf(event_type, style);
  const more = detailsOf(record).map(cleanText).join("  ");
  return `${event_id}  ${style.dim(created_at)}  ${paint(type)}  ${cleanText(node)}${more === "" ? "" : `  ${style.dim(more)}`}`;
}

function paintOf(type: string, style: Style): (text: string) => string {
  if (type.endsWith(".failed") || type.endsWith(".error")) return style.bad;
  // Batch events are about the service, not the run.
  return type.startsWith("batch.") ? style.dim : style.strong;
}

function detailsOf(record: EventRecord): string[] {
  const { iteration, attempt, worker, duration_ms, error, meta } = record as Record<string, unknown>;
  const parts: string[] = [];
  if (typeof iteration === "number") parts.push(`iteration ${iteration}`);
  if (typeof attempt === "number" && attempt > 1) parts.push(`attempt ${attempt}`);
  if (record.event_type === "command.claimed" && typeof worker === "string") parts.push(`by ${worker}`);
  const until = isJsonObject(meta) ? own(meta, "wake_at") : undefined;
  if (typeof until === "string") parts.push(`until ${until}`);
  const progress = isJsonObject(meta) ? own(meta, "progress") : undefined;
  if (isJsonObject(progress) && Object.keys(progress).length > 0) parts.push(progressText(progress));
  if (typeof duration_ms === "number") parts.push(`in ${formatDuration(duration_ms)}`);
  if (isJsonObject(error) && typeof error["message"] === "string") parts.push(firstLine(error["message"]));
  return parts;
}
