import type { Drawn } from "../traced/arcs.ts";

/** Most steps for which a playbook is drawn as a whole: larger graphs are slow to lay out and unreadable. */
export const WHOLE_MAX = 400;
/** Steps that are drawn of a larger one. */
export const AROUND_MAX = 150;

/** What is drawn of a playbook: all of it while it is small, else the steps that are nearest to `centre`, along arrows. */
export function around({ steps, arcs }: Drawn, centre: string | undefined): Drawn {
  if (steps.length <= WHOLE_MAX) return { steps, arcs };
  const neighbours = new Map<string, string[]>(steps.map(({ name }) => [name, []]));
  for (const { from, to } of arcs) {
    neighbours.get(from)?.push(to);
    neighbours.get(to)?.push(from);
  }
  const first = centre !== undefined && neighbours.has(centre) ? centre : steps[0]?.name;
  const near = new Set<string>(first === undefined ? [] : [first]);
  // A set is gone through in the order of its growth, so that this goes outwards ring by ring.
  for (const name of near) {
    for (const next of neighbours.get(name) ?? []) if (near.size < AROUND_MAX) near.add(next);
  }
  return {
    steps: steps.filter(({ name }) => near.has(name)),
    arcs: arcs.filter(({ from, to }) => near.has(from) && near.has(to)),
  };
}
