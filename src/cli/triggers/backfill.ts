import { BACKFILL_ROUTES } from "../../schema/routes/triggers.ts";
import { BACKFILL_ACTIVE_MAX, type BackfillAnswer, type BackfillBody } from "../../schema/triggers/backfill.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliInput, type CliValues, EXIT, textOption } from "../command-line/command.ts";
import { follow } from "../executions/bulk.ts";
import { startOnServer } from "../server/executions-api.ts";
import { openServer } from "../server/open-server.ts";
import { jsonText, plural } from "../terminal/text.ts";
import { triggerIdOf } from "./triggers.ts";

/** Longest time for working out which times a range has. */
const START_MS = 60_000;
/** Gaps that are printed. */
const GAPS_SHOWN = 10;

/** `flow backfill`: makes up for times of a schedule. */
export async function backfill(input: CliInput): Promise<number> {
  const { options, io } = input;
  const body = bodyOf(options);
  const server = await openServer(input);
  const params = { trigger_id: await triggerIdOf(input, server) };
  const started = await startOnServer(server.target, BACKFILL_ROUTES.backfill, { params, body }, io.signal, START_MS);
  const { bulk_id: id, matched } = started;
  if (id !== undefined && options["wait"] === true) return await follow(input, server, id);
  if (options["json"] === true) io.stdout.write(`${jsonText(started)}\n`);
  else if (id === undefined) io.stdout.write(previewText(started));
  else io.stdout.write(`Backfill ${id}: ${plural(matched, "execution")} to start\nNext: flow bulk status ${id}\n`);
  return EXIT.ok;
}

function bodyOf(options: CliValues): BackfillBody {
  const order = textOption(options, "order") as BackfillBody["order"];
  return {
    ...{ from: momentOf(options, "from"), to: momentOf(options, "to") },
    ...defined({ max_active: countOf(textOption(options, "max-active")), order }),
    ...(options["only-missing"] === true && { only_missing: true }),
    ...(options["dry-run"] === true && { dry_run: true }),
  };
}

function previewText({ matched, missing = 0, gaps = [], sample = [] }: BackfillAnswer): string {
  const lines = [`${plural(matched, "execution")} would be started`];
  for (const { due_at: due, status, execution_id: id } of sample)
    lines.push(`  ${due}  ${status}${id === undefined ? "" : ` by ${id}`}`);
  if (matched > sample.length) lines.push(`  … and ${matched - sample.length} more`);
  lines.push(missing === 0 ? "No gaps: an execution was started for each time" : `Gaps, ${plural(missing, "time")}:`);
  for (const { from, to, count } of gaps.slice(0, GAPS_SHOWN))
    lines.push(count === 1 ? `  ${from}` : `  ${from} to ${to}, ${plural(count, "time")}`);
  if (gaps.length > GAPS_SHOWN) lines.push("  … and more; --json lists them");
  return lines.map((line) => `${line}\n`).join("");
}

function momentOf(options: CliValues, name: "from" | "to"): string {
  const text = textOption(options, name);
  if (text !== undefined) return text;
  throw new FlowError("USAGE", `Which times? Give --${name}, for example --${name} 2026-01-31`);
}

function countOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const count = Number(text);
  if (/^\d{1,4}$/.test(text) && count >= 1 && count <= BACKFILL_ACTIVE_MAX) return count;
  throw new FlowError("USAGE", `--max-active is a whole number from 1 to ${BACKFILL_ACTIVE_MAX}; got '${text}'`);
}
