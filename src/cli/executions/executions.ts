import type { ExecutionItem } from "../../schema/api/executions.ts";
import { EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import { queryProblemText, readExecutionQuery } from "../../schema/rules/execution-query.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliInput, type CliValues, EXIT, listOption, textOption } from "../command-line/command.ts";
import { limitOf, momentOf } from "../command-line/list-options.ts";
import { openServer } from "../server/open-server.ts";
import { type Style, styleFor } from "../terminal/style.ts";
import { fitToTerminal, writeTable } from "../terminal/table.ts";
import { formatAgo, formatDuration, jsonText, labelText, plural } from "../terminal/text.ts";
import { executionArgument, resolveExecutionId } from "../watch/execution-id.ts";

/** Executions that are listed when the caller does not say. */
const LIMIT_DEFAULT = 20;

/** `flow executions`: those of a server, newest first. */
export async function showExecutions(input: CliInput): Promise<number> {
  const { options, io } = input;
  const now = Date.now();
  const filters = filtersOf(input, now);
  const limit = options["all"] === true ? Number.POSITIVE_INFINITY : limitOf(options, LIMIT_DEFAULT);
  const { target, first } = await openServer(input);
  const parent = textOption(options, "parent");
  const parent_execution_id = parent && (await resolveExecutionId(parent, target, io.signal));
  const query = { ...filters, parent_execution_id };
  const list = await first(EXECUTION_ROUTES.list, { query }, (page) => page.executions, limit);
  const executions = list.items;
  if (options["json"] === true) {
    io.stdout.write(`${jsonText({ executions })}\n`);
    return EXIT.ok;
  }
  const style = styleFor(io.stdout, io, options["no-color"] === true);
  const { headings, rowOf, shrink } = options["wide"] === true ? WIDE : NARROW;
  const statusColumn = headings.indexOf("STATUS");
  writeTable(
    io.stdout,
    headings,
    executions.map((execution) => rowOf(execution, now)),
    {
      paint: (cell, column) => (column === statusColumn ? paintStatus(cell, style) : cell),
      ...fitToTerminal(io, shrink),
    },
  );
  const rest = list.isMore ? "; there are more: --limit N, --all, or a filter" : "";
  io.stderr.write(`${plural(executions.length, "execution")} at ${target.url}${rest}\n`);
  return EXIT.ok;
}

/** Columns of a list, and those that are cut where there is no room, the first one first. */
interface TableLayout {
  headings: readonly string[];
  shrink: readonly string[];
  rowOf(item: ExecutionItem, now: number): string[];
}

const NARROW: TableLayout = {
  headings: ["ID", "PATH", "VER", "STATUS", "STARTED", "TOOK"],
  shrink: ["PATH"],
  rowOf(item, now) {
    const { execution_id, path, version, status, started_at } = item;
    const state = isOpen(item) ? `${status} ${item.progress}%` : status;
    const took = formatDuration(durationOf(item, now));
    return [execution_id, path, String(version), state, formatAgo(Date.parse(started_at), now), took];
  },
};

const WIDE: TableLayout = {
  headings: ["ID", "PATH", "VERSION", "STATUS", "PROGRESS", "STARTED", "DURATION", "STARTED BY", "LABELS"],
  shrink: [],
  rowOf(item, now) {
    const { execution_id, path, version, status, progress, started_at } = item;
    const share = isOpen(item) ? `${progress}%` : "-";
    const took = formatDuration(durationOf(item, now));
    return [
      execution_id,
      path,
      String(version),
      status,
      share,
      started_at,
      took,
      originText(item),
      labelText(item.labels ?? {}),
    ];
  },
};

/** What started an execution, for people. */
export function originText({ started_by }: Pick<ExecutionItem, "started_by">): string {
  if (started_by === undefined) return "";
  const { kind, id, name } = started_by;
  const who = name ?? (id === null ? "" : id);
  if (kind === "user") return who;
  return who === "" ? kind : `${kind} ${kind === "execution" || kind === "rerun" ? (id ?? who) : who}`;
}

/** Progress is shown only for open executions. */
export function isOpen({ ended_at }: Pick<ExecutionItem, "ended_at">): boolean {
  return ended_at === null;
}

/** How long an execution took, or takes until now, in milliseconds. The start is by the server's clock. */
export function durationOf({ duration_ms, started_at }: ExecutionItem, now: number): number {
  return duration_ms ?? Math.max(0, now - Date.parse(started_at));
}

/** A status, perhaps filled up with spaces, in its colour. */
export function paintStatus(status: string, style: Style): string {
  switch (status.trim().split(" ", 1)[0]) {
    case "COMPLETED":
    case "ready":
      return style.good(status);
    case "FAILED":
    case "stale":
      return style.bad(status);
    case "RUNNING":
    case "WAITING":
      return style.busy(status);
    case "CANCELLED":
    case "PAUSED":
    case "draining":
      return style.notice(status);
    default:
      return style.dim(status);
  }
}

function filtersOf({ arguments: words, options }: CliInput, now: number) {
  const time = (name: string) => {
    const text = textOption(options, name);
    return text === undefined ? undefined : momentOf(text, now, `--${name}`);
  };
  const q = searchOf(words.join(" "), options, now);
  return {
    ...defined({ q: q === "" ? undefined : q }),
    status: textOption(options, "status"),
    path: textOption(options, "path"),
    error_code: textOption(options, "error"),
    step: textOption(options, "step"),
    version: textOption(options, "version"),
    started_by: textOption(options, "started-by"),
    roots_only: options["roots"] === true ? "true" : undefined,
    since: time("since"),
    until: time("until"),
  };
}

/** The search with what repeatable options say. Throws `FlowError` USAGE, with the place, for what cannot be read. */
function searchOf(search: string, options: CliValues, now: number): string {
  const terms = ["label", "input"].flatMap((map) =>
    listOption(options, map).map((text) => {
      const [, name, value] = /^([^=\s":]+)=(.+)$/s.exec(text) ?? [];
      if (name === undefined) throw new FlowError("USAGE", `--${map} takes NAME=VALUE, got '${text}'`);
      return `${map}.${name}:"${(value ?? "").replace(/["\\]/g, "\\$&")}"`;
    }),
  );
  const all = [search, ...terms].join(" ").trim();
  const { problem } = readExecutionQuery(all, now);
  if (problem === undefined) return all;
  throw new FlowError("USAGE", `The search cannot be read: ${queryProblemText(all, problem)}`);
}

/** `flow cancel`: cancels an execution and its sub-playbooks. An execution that has already ended is no error. */
export async function cancelOne(input: CliInput): Promise<number> {
  const { options, io } = input;
  const { target, call } = await openServer(input);
  const id = await executionArgument(input, target);
  const body = { reason: textOption(options, "reason"), cascade: options["no-cascade"] !== true };
  const answer = await call(EXECUTION_ROUTES.cancel, { params: { execution_id: id }, body });
  if (options["json"] === true) {
    io.stdout.write(`${jsonText(answer)}\n`);
    return EXIT.ok;
  }
  const { status, children_cancelled: children } = answer;
  const also = children > 0 ? `, and ${plural(children, "sub-playbook")} with it` : "";
  if (status === "CANCELLED") io.stdout.write(`Execution ${id} is CANCELLED${also}\n`);
  else io.stdout.write(`Execution ${id} had ended before: ${status}${also}\n`);
  return EXIT.ok;
}
