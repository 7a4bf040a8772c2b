import type { PlaybookRuleItem } from "../../schema/api/roles.ts";
import { ROLE_ROUTES } from "../../schema/routes/roles.ts";
import { matchesPattern } from "../../schema/rules/access-rules.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliInput, listOption } from "../command-line/command.ts";
import { openServer } from "../server/open-server.ts";
import { printAnswer } from "../terminal/print-answer.ts";
import { writeTable } from "../terminal/table.ts";
import { plural } from "../terminal/text.ts";

/** A permission on playbooks without its id. */
type PlaybookRule = Omit<PlaybookRuleItem, "permission_id">;

/** `flow roles allow`: adds a permission on the paths that match one of the patterns and none of the exceptions. */
export async function allowOnPaths(input: CliInput): Promise<number> {
  const { arguments: words, options } = input;
  const [role = "", ...patterns] = words;
  const [can_execute, can_view, can_modify] = [options["execute"], options["view"], options["modify"]].map(Boolean);
  if (!can_execute && !can_view && !can_modify) {
    throw new FlowError("USAGE", "'flow roles allow' needs at least one of --execute, --view and --modify");
  }
  const except = listOption(options, "except");
  const [path, ...others] = patterns;
  const isPath = path !== undefined && others.length === 0 && !/[*%]/.test(path);
  const body: PlaybookRule = {
    playbook_path: isPath ? path : null,
    allow_pattern: isPath ? null : patterns.join("\n"),
    deny_pattern: except.length === 0 ? null : except.join("\n"),
    can_execute: can_execute === true,
    can_view: can_view === true,
    can_modify: can_modify === true,
  };
  const rule = await (await openServer(input)).call(ROLE_ROUTES.allow, { params: { role }, body });
  return printAnswer(
    input,
    rule,
    `The role '${role}' may ${actionsOf(rule).join(", ")} ${pathsOf(rule)} (permission ${rule.permission_id})`,
  );
}

/**
 * `flow roles deny`: takes paths out of everything that the role allows. Each permission is replaced, the new one first, so
 * that users never lose access in between.
 */
export async function denyPaths(input: CliInput): Promise<number> {
  const [role = "", ...patterns] = input.arguments;
  const server = await openServer(input);
  const { playbooks } = await server.call(ROLE_ROUTES.read, { params: { role } });
  const changed: PlaybookRuleItem[] = [];
  for (const rule of playbooks) {
    const { permission_id, ...kept } = rule;
    const before = linesOf(kept.deny_pattern);
    const added = patterns.filter((pattern) => !before.includes(pattern));
    // A permission on one path changes only if a pattern matches that path.
    const applies =
      kept.allow_pattern !== null || patterns.some((pattern) => matchesPattern(pattern, kept.playbook_path ?? ""));
    if (added.length === 0 || !applies) continue;
    const narrower: PlaybookRule = { ...kept, deny_pattern: [...before, ...added].join("\n") };
    changed.push(await server.call(ROLE_ROUTES.allow, { params: { role }, body: narrower }));
    await server.call(ROLE_ROUTES.disallow, { params: { role, permission_id } });
  }
  const unchanged = playbooks.length === 0 ? "allows nothing" : "already denies this";
  const change =
    changed.length === 0
      ? unchanged
      : `no longer allows ${patterns.join(", ")} (${plural(changed.length, "permission")} narrowed)`;
  return printAnswer(input, { narrowed: changed }, `The role '${role}' ${change}`);
}

/** `flow roles disallow`: removes permissions by their ids. */
export async function disallow(input: CliInput): Promise<number> {
  const [role = "", ...ids] = input.arguments;
  const server = await openServer(input);
  for (const permission_id of ids) await server.call(ROLE_ROUTES.disallow, { params: { role, permission_id } });
  return printAnswer(input, { removed: ids }, `${plural(ids.length, "permission")} removed from the role '${role}'`);
}

/** Writes permissions on playbooks as a table. */
export function writeRules(stream: { write(text: string): unknown }, rules: readonly PlaybookRuleItem[]): void {
  writeTable(
    stream,
    ["ID", "MAY", "PATHS", "EXCEPT"],
    rules.map((rule) => [
      rule.permission_id,
      actionsOf(rule).join(","),
      [rule.playbook_path ?? "", ...linesOf(rule.allow_pattern)].filter((text) => text !== "").join("  "),
      linesOf(rule.deny_pattern).join("  "),
    ]),
  );
}

function actionsOf({ can_execute, can_view, can_modify }: PlaybookRule): string[] {
  return [can_execute ? "execute" : "", can_view ? "view" : "", can_modify ? "modify" : ""].filter(
    (word) => word !== "",
  );
}

function pathsOf({ playbook_path, allow_pattern, deny_pattern }: PlaybookRule): string {
  const about = playbook_path ?? linesOf(allow_pattern).join(", ");
  return deny_pattern === null ? about : `${about}, but not ${linesOf(deny_pattern).join(", ")}`;
}

/** A text of patterns holds one per line. */
function linesOf(patterns: string | null): string[] {
  return patterns === null ? [] : patterns.split("\n");
}
