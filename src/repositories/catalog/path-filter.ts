import type { PathRule } from "../../schema/rules/access-rules.ts";

/**
 * The condition that one of the rules is about the path in `column`; without a rule, never. `tag` is the driver's or the
 * builder's tagged template, and `column` a piece of it: both take the same text, and have no type in common.
 */
export function pathFilter<F>(tag: unknown, column: F, rules: readonly PathRule[]): F {
  const sql = tag as (text: TemplateStringsArray, ...values: unknown[]) => F;
  return sql`exists (
    select from jsonb_to_recordset(${JSON.stringify(rules)}::text::jsonb) as rule (exact text[], allow text, deny text)
    where (${column} = any(rule.exact) or ${column} ~ rule.allow) and (${column} ~ rule.deny) is not true
  )`;
}
