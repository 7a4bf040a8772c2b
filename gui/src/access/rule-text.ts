import type { Role } from "../api/types.ts";

/** What one row of a role says of playbooks. */
export type Rule = Role["playbooks"][number];

/** `see, run etl/**, but not etl/private/**`. */
export function ruleText(rule: Rule): string {
  const what = linesOf(rule.playbook_path ?? rule.allow_pattern ?? "");
  const except = rule.deny_pattern === null ? "" : `, but not ${linesOf(rule.deny_pattern)}`;
  return `${actionsOf(rule).join(", ")} ${what}${except}`;
}

/** What the row lets one do, in the page's words. */
export function actionsOf(rule: Rule): string[] {
  const words = [rule.can_view && "see", rule.can_execute && "run", rule.can_modify && "change"];
  return words.filter((word) => word !== false);
}

/** Patterns stand one in each line. */
function linesOf(pattern: string): string {
  return pattern.split("\n").join(", ");
}
