import { setTimeout as sleep } from "node:timers/promises";
import type { BulkAction, BulkAnswer, BulkBody, BulkStartAnswer } from "../../schema/api/steering.ts";
import { STEERING_ROUTES } from "../../schema/routes/steering.ts";
import type { ExecutionFilter } from "../../schema/rules/execution-filter.ts";
import { queryProblemText, readExecutionQuery } from "../../schema/rules/execution-query.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliAction, type CliInput, type CliValues, EXIT, textOption } from "../command-line/command.ts";
import { startOnServer } from "../server/executions-api.ts";
import { type CommandServer, openServer } from "../server/open-server.ts";
import { cleanText, jsonText, plural } from "../terminal/text.ts";
import { namesOf, rerunBody } from "./rerun.ts";

/** Milliseconds between two looks of `--wait`. */
const LOOK_MS = 1_000;
/** Longest time for finding out what a filter means. */
const START_MS = 60_000;

/** `flow bulk cancel|pause|resume|rerun`: does it with every execution that a filter means. */
export function bulkAction(action: Exclude<BulkAction, "backfill">): CliAction {
  return async (input) => {
    const { options, io } = input;
    const filter = filterOf(input);
    const server = await openServer(input);
    const isDry = options["dry-run"] === true;
    const { roots_only: isRoot, ...others } = filter;
    const sent = { ...others, ...(isRoot === true && { roots_only: true as const }) };
    const what = { filter: sent, ...(isDry && { dry_run: true }) };
    const body: BulkBody =
      action === "rerun"
        ? { action, ...what, options: await rerunBody(options, io.folder) }
        : { action, ...what, options: steerOptions(options) };
    const started = await startOnServer(server.target, STEERING_ROUTES.bulk, { body }, io.signal, START_MS);
    const { bulk_id: id, matched, sample = [] } = started;
    if (id === undefined) {
      if (options["json"] === true) io.stdout.write(`${jsonText(started)}\n`);
      else {
        io.stdout.write(`${plural(matched, "execution")} would be ${DONE[action]}\n`);
        for (const { execution_id, path, status, plan } of sample)
          io.stdout.write(`  ${execution_id}  ${status}  ${cleanText(path)}${planText(plan)}\n`);
        if (matched > sample.length) io.stdout.write(`  … and ${matched - sample.length} more\n`);
      }
      return EXIT.ok;
    }
    if (options["wait"] === true) return await follow(input, server, id);
    if (options["json"] === true) io.stdout.write(`${jsonText(started)}\n`);
    else {
      io.stdout.write(`Bulk operation ${id}: ${plural(matched, "execution")} to ${action}\n`);
      io.stdout.write(`Next: flow bulk status ${id}\n`);
    }
    return EXIT.ok;
  };
}

type Plan = NonNullable<BulkStartAnswer["sample"]>[number]["plan"];

function planText(plan: Plan): string {
  if (plan === undefined) return "";
  if ("refused" in plan) return `: fails with ${plan.refused.code}: ${cleanText(plan.refused.message)}`;
  return `: ${plural(plan.reused, "step")} reused, ${namesOf(plan.will_run)}`;
}

function steerOptions(options: CliValues) {
  const reason = textOption(options, "reason");
  return { ...defined({ reason }), ...(options["no-cascade"] === true && { cascade: false }) };
}

const DONE = {
  cancel: "cancelled",
  pause: "paused",
  resume: "resumed",
  rerun: "repeated",
  backfill: "started",
} as const;

/** `flow bulk status`: how far it is, and what failed. */
export async function bulkStatus(input: CliInput): Promise<number> {
  const server = await openServer(input);
  const id = idOf(input);
  if (input.options["wait"] === true) return await follow(input, server, id);
  return show(input, await server.call(STEERING_ROUTES.bulkStatus, { params: { bulk_id: id } }));
}

/** `flow bulk stop`, `hold` and `go-on`: changes an operation that is under way. */
export function bulkChange(what: "bulkCancel" | "bulkPause" | "bulkResume"): CliAction {
  return async (input) => {
    const server = await openServer(input);
    return show(input, await server.call(STEERING_ROUTES[what], { params: { bulk_id: idOf(input) } }));
  };
}

function idOf({ arguments: [id = ""] }: CliInput): string {
  if (/^[1-9]\d{0,15}$/.test(id)) return id;
  throw new FlowError("USAGE", `A bulk operation is named by its id, a number; got '${id}'`);
}

/** Throws `FlowError` USAGE without a filter, or with one that cannot be read. */
function filterOf({ options }: CliInput): ExecutionFilter {
  const text = textOption(options, "filter");
  const hint = `for example --filter 'status:failed path:etl/* started:>1d'`;
  if (text === undefined) throw new FlowError("USAGE", `Which executions? Select them with --filter, ${hint}`);
  const { filter, problem } = readExecutionQuery(text, Date.now());
  if (filter === undefined) {
    throw new FlowError("USAGE", `--filter cannot be read: ${queryProblemText(text, problem)}`);
  }
  return filter;
}

/** Waits for the end of an operation. */
export async function follow(input: CliInput, server: CommandServer, id: string): Promise<number> {
  for (;;) {
    const answer = await server.call(STEERING_ROUTES.bulkStatus, { params: { bulk_id: id } });
    if (answer.ended_at !== null) return show(input, answer);
    await sleep(LOOK_MS, undefined, { signal: input.io.signal }).catch(() => undefined);
    if (input.io.signal.aborted) {
      input.io.stderr.write(`Resumed. Next: flow bulk status ${id}\n`);
      return EXIT.cancelled;
    }
  }
}

/** The command that lists all that an operation has started. */
function allOf({ action, bulk_id: id, options }: BulkAnswer): string {
  if (action === "backfill") return `flow executions 'by:trigger by_id:${options["trigger_id"]}'`;
  return `flow executions 'by:bulk by_id:${id}'`;
}

/** Failures that are printed. */
const SHOWN = 10;

function show({ options, io }: CliInput, answer: BulkAnswer): number {
  const { counts, failures, started = [], status, action, bulk_id } = answer;
  const code = counts.failed > 0 ? EXIT.failed : EXIT.ok;
  if (options["json"] === true) {
    io.stdout.write(`${jsonText(answer)}\n`);
    return code;
  }
  const { matched, done, failed, skipped } = counts;
  const parts = [
    `${done} of ${matched} ${DONE[action]}`,
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
  ];
  io.stdout.write(`Bulk operation ${bulk_id} is ${status}: ${parts.join(", ")}\n`);
  for (const { execution_id: id, due_at: due, code: why, message } of failures.slice(0, SHOWN))
    io.stdout.write(`  ${id ?? due}  ${why}  ${cleanText(message)}\n`);
  if (failed > SHOWN) io.stdout.write(`  … and ${failed - SHOWN} more; --json lists ${failures.length}\n`);
  for (const { execution_id: id, due_at: due, new_execution_id: by } of started.slice(0, SHOWN))
    io.stdout.write(id === undefined ? `  ${due}  started ${by}\n` : `  ${id} is repeated by ${by}\n`);
  if (started.length > SHOWN) io.stdout.write(`  … and ${done - SHOWN} more. All of them: ${allOf(answer)}\n`);
  return code;
}
