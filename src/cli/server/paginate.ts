import type { AnswerOf, RouteContract } from "../../schema/routes/contract.ts";
import type { RouteInput } from "../../schema/routes/request.ts";
import { type CallOptions, callServer } from "./client.ts";
import type { ServerTarget } from "./target.ts";

/** Items that one call asks for: as many as a server gives. */
const PAGE = 500;

type Paged<C extends RouteContract> = AnswerOf<C> & { next_cursor: string | null };

/** The beginning of a list. */
export interface FirstItems<Item> {
  items: Item[];
  /** The list goes on after them. */
  isMore: boolean;
}

/** Every item of a list that answers in pages; `itemsOf` takes them out of a page. Throws as `callServer` does. */
export async function everyItem<C extends RouteContract, Item>(
  target: ServerTarget,
  contract: C,
  input: RouteInput<C> & CallOptions,
  itemsOf: (page: Paged<C>) => readonly Item[],
): Promise<Item[]> {
  return (await firstItems(target, contract, input, itemsOf, Number.POSITIVE_INFINITY)).items;
}

/** The first items of such a list, at most `limit`. Throws as `callServer` does. */
export async function firstItems<C extends RouteContract, Item>(
  target: ServerTarget,
  contract: C,
  input: RouteInput<C> & CallOptions,
  itemsOf: (page: Paged<C>) => readonly Item[],
  limit: number,
): Promise<FirstItems<Item>> {
  const items: Item[] = [];
  let cursor: string | null | undefined;
  while (cursor !== null && items.length < limit) {
    // The query of a list has both; for a contract that is not known yet the compiler cannot tell.
    const query = { ...(input.query as object | undefined), limit: Math.min(PAGE, limit - items.length), cursor };
    const page = (await callServer(target, contract, { ...input, query } as typeof input)) as Paged<C>;
    for (const item of itemsOf(page)) items.push(item);
    cursor = page.next_cursor;
  }
  return { items, isMore: cursor !== null };
}
