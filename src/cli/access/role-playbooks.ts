import type { PlaybookRuleItem } from "../../schema/api/roles.ts";
import { matchesPattern } from "../../schema/rules/access-rules.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliInput, listOption } from "../command-line/command.ts";
import {
  type ApiContext,
  allowPlaybooks,
  disallowPlaybooks,
  type PlaybookRule,
  readRole,
} from "../server/access-api.ts";
import { printAnswer } from "../terminal/print-answer.ts";
import { writeTable } from "../terminal/table.ts";
import { plural } from "../terminal/text.ts";

/** A line of `flow roles`, its words checked. */
export interface RolesCommand {
  api: ApiContext;
  role: string;
  /** What stands behind the role. */
  rest: readonly string[];
  input: CliInput;
}

/** `flow roles allow`: one permission more, on the paths that fit one of the patterns and none of the exceptions. */
export async function allowOnPaths({ api, role, rest, input }: RolesCommand): Promise<number> {
  const { options } = input;
  const [can_execute, can_view, can_modify] = [options["execute"], options["view"], options["modify"]].map(Boolean);
  if (!can_execute && !can_view && !can_modify) {
    throw new FlowError(
      "USAGE",
      "'flow roles allow' needs what is allowed: --execute, --view, --modify, or some of them",
    );
  }
  const except = listOption(options, "except");
  const [path, ...others] = rest;
  const isPath = path !== undefined && others.length === 0 && !/[*%]/.test(path);
  const rule = await allowPlaybooks(api, role, {
    playbook_path: isPath ? path : null,
    allow_pattern: isPath ? null : rest.join("\n"),
    deny_pattern: except.length === 0 ? null : except.join("\n"),
    can_execute: can_execute === true,
    can_view: can_view === true,
    can_modify: can_modify === true,
  });
  return printAnswer(
    input,
    rule,
    `The role '${role}' may ${actionsOf(rule).join(", ")} ${pathsOf(rule)} (permission ${rule.permission_id})`,
  );
}

/**
 * `flow roles deny`: takes paths out of all that the role allows. A permission is not changed but replaced, the new one first:
 * who may go on meanwhile is not interrupted.
 */
export async function denyPaths({ api, role, rest, input }: RolesCommand): Promise<number> {
  const { playbooks } = await readRole(api, role);
  const changed: PlaybookRuleItem[] = [];
  for (const rule of playbooks) {
    const { permission_id, ...kept } = rule;
    const before = linesOf(kept.deny_pattern);
    const added = rest.filter((pattern) => !before.includes(pattern));
    // A permission on one path that is not meant has nothing to be taken out of it.
    const applies =
      kept.allow_pattern !== null || rest.some((pattern) => matchesPattern(pattern, kept.playbook_path ?? ""));
    if (added.length === 0 || !applies) continue;
    const narrower: PlaybookRule = { ...kept, deny_pattern: [...before, ...added].join("\n") };
    changed.push(await allowPlaybooks(api, role, narrower));
    await disallowPlaybooks(api, role, permission_id);
  }
  const none = playbooks.length === 0 ? "allows nothing" : "allows nothing of it as it is";
  const change =
    changed.length === 0
      ? none
      : `allows ${rest.join(", ")} no more (${plural(changed.length, "permission")} narrowed)`;
  return printAnswer(input, { narrowed: changed }, `The role '${role}' ${change}`);
}

/** `flow roles disallow`: takes permissions away, by their ids. */
export async function disallow({ api, role, rest, input }: RolesCommand): Promise<number> {
  for (const id of rest) await disallowPlaybooks(api, role, id);
  return printAnswer(input, { removed: rest }, `The role '${role}' has lost ${plural(rest.length, "permission")}`);
}

/** Permissions on playbooks as a table. */
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

/** Several patterns stand in one text, one in each line. */
function linesOf(patterns: string | null): string[] {
  return patterns === null ? [] : patterns.split("\n");
}
