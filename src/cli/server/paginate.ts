/** Every item of a list that answers in pages; `load` is asked with the cursor of the page before, undefined at first. */
export async function paginate<T>(
  load: (cursor: string | undefined) => Promise<{ items: readonly T[]; next: string | null }>,
): Promise<T[]> {
  const all: T[] = [];
  let cursor: string | undefined;
  do {
    const { items, next } = await load(cursor);
    for (const item of items) all.push(item);
    cursor = next ?? undefined;
  } while (cursor !== undefined);
  return all;
}
