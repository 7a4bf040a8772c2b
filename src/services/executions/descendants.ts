import type { Database } from "../../repositories/database/database.ts";
import { listChildren } from "../../repositories/executions/execution-list.ts";

/** Children looked up and acted on at a time. */
const PAGE = 100;

/**
 * Acts on every open execution below this one, including those below executions that have ended: a child that was not awaited may
 * still run there. Returns how many of them `act` says it changed.
 */
export async function eachOpenBelow(
  database: Database,
  executionId: string,
  act: (executionId: string) => Promise<boolean>,
): Promise<number> {
  let count = 0;
  const parents = [executionId];
  for (let parent = parents.pop(); parent !== undefined; parent = parents.pop()) {
    let after = "0";
    for (;;) {
      const children = await listChildren(database, parent, after, PAGE);
      const changed = await Promise.all(children.map(async (child) => child.isOpen && (await act(child.executionId))));
      count += changed.filter(Boolean).length;
      parents.push(...children.map((child) => child.executionId));
      if (children.length < PAGE) break;
      after = children.at(-1)?.executionId ?? after;
    }
  }
  return count;
}
