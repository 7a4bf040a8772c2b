import type { PathRule } from "../../schema/rules/access-rules.ts";

/** A part of a list. `next` is the key after which the following page begins; absent on the last. */
export interface Page<T, K> {
  items: T[];
  next?: K;
}

/** Which part of a list: at most `limit` items after the key `cursor`, which is the `next` of the page before. */
export interface PageRequest<K> {
  limit: number;
  cursor?: K;
}

/** The part of a list that the reader may see; absent: all of it. */
export interface Visible {
  visible?: readonly PathRule[] | undefined;
}

/** The page that begins with these rows. The statement reads `limit + 1`: the extra row shows that another page follows. */
export function page<T, K>(rows: readonly T[], limit: number, key: (last: T) => K): Page<T, K> {
  const last = rows[limit - 1];
  if (rows.length <= limit || last === undefined) return { items: [...rows] };
  return { items: rows.slice(0, limit), next: key(last) };
}

/**
 * The condition that a rule allows the path in `column`; without a rule, never. `tag` is the tagged template of the driver or of the
 * query builder, and `column` a piece of it: both take the same text, and have no type in common.
 */
export function pathFilter<F>(tag: unknown, column: F, rules: readonly PathRule[]): F {
  const sql = tag as (text: TemplateStringsArray, ...values: unknown[]) => F;
  return sql`exists (
    select from jsonb_to_recordset(${JSON.stringify(rules)}::text::jsonb) as rule (exact text[], allow text, deny text)
    where (${column} = any(rule.exact) or ${column} ~ rule.allow) and (${column} ~ rule.deny) is not true
  )`;
}
