import type { ExecutionItem } from "../../schema/api/executions.ts";
import { rerunChanges } from "../../schema/inputs/rerun-changes.ts";
import { EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import type { RelativeAnswer } from "../../schema/rules/lineage.ts";
import { defined } from "../../schema/words/defined.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { type CliInput, EXIT } from "../command-line/command.ts";
import { limitOf } from "../command-line/list-options.ts";
import { openServer } from "../server/open-server.ts";
import { type Style, styleFor } from "../terminal/style.ts";
import { cleanText, fitText, formatAgo, jsonText, plural } from "../terminal/text.ts";
import { executionArgument } from "../watch/execution-id.ts";
import { paintStatus } from "./executions.ts";

/** Descendants that are shown when the caller does not say. */
const LIMIT_DEFAULT = 100;
/** Columns for what a rerun changed; `--json` has all of it. */
const CHANGED_WIDTH = 60;

/** `flow lineage`: where an execution comes from and what came from it, as a tree. */
export async function showLineage(input: CliInput): Promise<number> {
  const { options, io } = input;
  const limit = options["all"] === true ? Number.POSITIVE_INFINITY : limitOf(options, LIMIT_DEFAULT);
  const { target, call, first } = await openServer(input);
  const id = await executionArgument(input, target);
  const params = { execution_id: id };
  let ancestors: readonly RelativeAnswer[] = [];
  let changed: JsonObject | undefined;
  const { items: descendants, isMore } = await first(
    EXECUTION_ROUTES.lineage,
    { params },
    (page) => {
      // Later pages have none.
      if (page.ancestors.length > 0) ancestors = page.ancestors;
      changed = page.changed;
      return page.descendants;
    },
    limit,
  );
  if (options["json"] === true) {
    io.stdout.write(`${jsonText({ execution_id: id, ...defined({ changed }), ancestors, descendants })}\n`);
    return EXIT.ok;
  }
  const own = await call(EXECUTION_ROUTES.detail, { params });
  const style = styleFor(io.stdout, io, options["no-color"] === true);
  const lines = treeOf({ ...own, ...defined({ changed }) }, ancestors, descendants).map((row) => lineOf(row, style));
  io.stdout.write(`${lines.join("\n")}\n`);
  const rest = isMore ? "; there are more: --limit N, or --all" : "";
  io.stderr.write(`${plural(ancestors.length, "ancestor")}, ${plural(descendants.length, "descendant")}${rest}\n`);
  return EXIT.ok;
}

/** A line of the tree. */
interface TreeRow {
  one: Pick<RelativeAnswer, "execution_id" | "path" | "version" | "status" | "started_at" | "deleted_at">;
  /** Ancestors within what is shown. */
  depth: number;
  /** How it came from the one above; undefined at the top. */
  by: RelativeAnswer["by"] | undefined;
  /** The trigger that started it, if one did. */
  trigger: string | undefined;
  changed: JsonObject | undefined;
  isOwn: boolean;
}

function treeOf(
  own: ExecutionItem & Pick<RelativeAnswer, "changed">,
  ancestors: readonly RelativeAnswer[],
  descendants: readonly RelativeAnswer[],
): TreeRow[] {
  const depths = new Map<string, number>();
  const rows: TreeRow[] = [];
  // How an ancestor's successor came from it stands with the ancestor; what a rerun changed stands with the rerun.
  let by: TreeRow["by"];
  let trigger: TreeRow["trigger"];
  for (const [depth, one] of ancestors.toReversed().entries()) {
    rows.push({ one, depth, by, trigger, changed: one.changed, isOwn: false });
    by = one.by;
    trigger = one.trigger;
  }
  const depth = ancestors.length;
  rows.push({ one: own, depth, by, trigger, changed: own.changed, isOwn: true });
  depths.set(own.execution_id, depth);
  for (const one of descendants) {
    // One whose origin may not be seen stands below the execution itself.
    const below = (one.of === null ? undefined : depths.get(one.of)) ?? depth;
    depths.set(one.execution_id, below + 1);
    rows.push({ one, depth: below + 1, by: one.by, trigger: one.trigger, changed: one.changed, isOwn: false });
  }
  return rows;
}

const WORDS: Readonly<Record<RelativeAnswer["by"], string>> = {
  parent: "called",
  rerun: "rerun",
  trigger: "triggered",
  hook: "hook",
};

function wordsOf(by: RelativeAnswer["by"], trigger: string | undefined): string {
  return trigger === undefined ? WORDS[by] : `${WORDS[by]} by ${cleanText(trigger)}`;
}

function lineOf({ one, depth, by, trigger, changed, isOwn }: TreeRow, style: Style): string {
  const { execution_id, path, version, status, started_at, deleted_at } = one;
  const branch = by === undefined ? "" : `${"   ".repeat(Math.max(0, depth - 1))}└─ ${wordsOf(by, trigger)} `;
  const when = started_at === null ? "" : formatAgo(Date.parse(started_at), Date.now());
  const gone = deleted_at === undefined ? "" : ", deleted";
  const told = changed === undefined ? "" : `  ${fitText(cleanText(rerunChanges(changed)), CHANGED_WIDTH)}`;
  const name = isOwn ? style.strong(cleanText(path)) : cleanText(path);
  const mark = isOwn ? style.dim("  ← this one") : "";
  return `${style.dim(branch)}${execution_id}  ${name} v${version}  ${paintStatus(status, style)}${gone}  ${style.dim(`${when}${told}`)}${mark}`;
}
