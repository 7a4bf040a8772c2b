import type { Database } from "../database/database.ts";

/** A text that is another one after an agent was registered, or has become something else: of all agents, whoever may see them. */
export async function agentsMark({ sql }: Database): Promise<string> {
  const [row] = await sql<{ mark: string }[]>`
    select count(*) || ':' || coalesce(sum(catalog_id), 0) as mark from flow.resource where kind = 'agent'`;
  return row?.mark ?? "";
}
