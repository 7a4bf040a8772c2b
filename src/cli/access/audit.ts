import * as v from "valibot";
import { type AuditItem, type AuditProblem, ChainHeads, type ChainPlace } from "../../schema/api/audit.ts";
import { AUDIT_ROUTES } from "../../schema/routes/auth.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliAction, type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { limitOf, momentOf } from "../command-line/list-options.ts";
import { openServer } from "../server/open-server.ts";
import { printJson } from "../terminal/print-answer.ts";
import { fitToTerminal, writeTable } from "../terminal/table.ts";
import { cleanText, plural } from "../terminal/text.ts";
import { readTextOption } from "../terminal/text-file.ts";

/** `flow audit …`: the audit log, and whether it is whole. */
export const AUDIT_ACTIONS = { list, verify } satisfies Record<string, CliAction>;

/** Rows that are listed when the caller does not say. */
const LIMIT_DEFAULT = 50;

async function list(input: CliInput): Promise<number> {
  const { options, io } = input;
  const limit = limitOf(options, LIMIT_DEFAULT);
  const { first, target } = await openServer(input);
  const since = textOption(options, "since");
  const query = {
    actor: textOption(options, "actor"),
    action: textOption(options, "action"),
    resource: textOption(options, "resource"),
    execution_id: textOption(options, "execution"),
    result: textOption(options, "result") as AuditItem["result"] | undefined,
    since: since === undefined ? undefined : momentOf(since, Date.now()),
  };
  const { items: entries, isMore } = await first(AUDIT_ROUTES.list, { query }, (page) => page.entries, limit);
  if (options["json"] === true) return printJson(input, { entries });
  writeTable(io.stdout, ["TIME", "WHO", "ACTION", "RESULT", "ON", "RULE"], entries.map(rowOf), {
    ...fitToTerminal(io, ["RULE", "ON"]),
  });
  const rest = isMore ? "; there are more: --limit N, or a filter" : "";
  io.stderr.write(`${plural(entries.length, "row")} at ${target.url}${rest}\n`);
  return EXIT.ok;
}

function rowOf({ at, actor_kind, actor, action, result, resource, execution_id, rule }: AuditItem): string[] {
  const on = execution_id === null || resource.endsWith(execution_id) ? resource : `${resource} (${execution_id})`;
  return [at, actor ?? actor_kind, action, result, on, rule].map(cleanText);
}

async function verify(input: CliInput): Promise<number> {
  const { options, io } = input;
  const file = textOption(options, "heads");
  let heads = file === undefined ? undefined : headsOf(await readTextOption(file, "--heads", io), file);
  const { call, target } = await openServer(input);
  let after: ChainPlace | undefined;
  const total = { rows: 0, before: 0, problems: [] as AuditProblem[] };
  for (;;) {
    const piece = await call(AUDIT_ROUTES.verify, { body: { after, heads } });
    heads = undefined;
    total.rows += piece.rows;
    total.before += piece.before;
    total.problems.push(...piece.problems);
    if (piece.next !== null) {
      after = piece.next;
      continue;
    }
    const isWhole = total.problems.length === 0;
    const code = isWhole ? EXIT.ok : EXIT.failed;
    if (options["json"] === true) {
      printJson(input, { whole: isWhole, ...total, heads: piece.heads });
      return code;
    }
    for (const { kind, message } of total.problems) io.stdout.write(`${kind}: ${cleanText(message)}\n`);
    if (isWhole) io.stdout.write(`The audit log is whole: ${summary(total)}\n`);
    else io.stderr.write(`${plural(total.problems.length, "problem")} in ${summary(total)} at ${target.url}\n`);
    return code;
  }
}

function summary({ rows, before }: { rows: number; before: number }): string {
  const old = before === 0 ? "" : `, and ${before} of older versions that are in no chain`;
  return `${plural(rows, "row")}${old}`;
}

/** What an earlier `flow audit verify --json` printed, or its `heads` alone. Throws `FlowError` FILE_UNREADABLE. */
function headsOf(text: string, file: string): ChainPlace[] {
  try {
    const told = JSON.parse(text) as unknown;
    return v.parse(ChainHeads, Array.isArray(told) ? told : (told as { heads?: unknown } | null)?.heads);
  } catch (cause) {
    const message = `${file} does not have the heads of an earlier verification`;
    throw new FlowError("FILE_UNREADABLE", `${message}; 'flow audit verify --json' prints them`, { cause });
  }
}
