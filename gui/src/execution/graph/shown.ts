import type { Execution, Step } from "../../api/types.ts";
import type { Drawn } from "../traced/arcs.ts";
import type { StepRunTrace } from "../traced/step-traces.ts";
import { BOX, INNER, type Sketch } from "./layout.ts";

/** An arrow that was taken, and how often. */
export type TakenArc = NonNullable<Execution["arcs"]>[number];

/** A playbook as it is drawn; with `states`, as it ran. */
export interface Shown {
  drawn: Drawn;
  /** Empty for a playbook that is not run. */
  states: ReadonlyMap<string, Step>;
  taken: readonly TakenArc[] | undefined;
  /** The execution whose steps these are. */
  execution: Execution | undefined;
  /** Playbooks that were called, opened within the step that called them. */
  inner: ReadonlyMap<string, Shown>;
  /** Loops that are opened: how their items came out. */
  items: ReadonlyMap<string, readonly ItemState[]>;
}

/** How an item of a loop came out, or that it runs. */
export type ItemState = "good" | "bad" | "busy" | "quiet";

/** Items of a loop that are drawn in its box. */
export const ITEMS_MAX = 320;
/** Items in a row of the box; the styles have as many columns. */
const ITEMS_ROW = 20;
const ITEM_PX = 9;

/** What is laid out of it. */
export function sketchOf({ drawn, inner, items }: Shown): Sketch {
  return {
    boxes: drawn.steps.map(({ name }) => {
      const within = inner.get(name);
      const count = Math.min(ITEMS_MAX, items.get(name)?.length ?? 0);
      const more = count === 0 ? 0 : Math.ceil(count / ITEMS_ROW) * ITEM_PX + INNER.side;
      return {
        name,
        width: BOX.width,
        height: BOX.height + more,
        ...(within !== undefined && { inner: sketchOf(within) }),
      };
    }),
    arcs: drawn.arcs.map(({ from, to }) => [from, to]),
  };
}

/** How the items of a step's loop came out, in their order: of its last run. */
export function itemsOf(runs: readonly StepRunTrace[], step: Step): ItemState[] {
  const known = runs.at(-1)?.iterations;
  const total = Math.min(step.loop?.total ?? known?.size ?? 0, ITEMS_MAX);
  const isAllGood = step.loop !== undefined && step.loop.done === step.loop.total && step.loop.failed === 0;
  return Array.from({ length: total }, (_, index) => {
    const item = known?.get(index);
    if (item?.endedAt !== undefined) return item.isFailed ? "bad" : "good";
    if (isAllGood) return "good";
    return (item?.command?.claims.length ?? 0) > 0 && step.ended_at === null ? "busy" : "quiet";
  });
}
