import type { CommandLoop } from "../words/command.ts";

/*
 * What a command takes of a worker's capacity: servers count it when they answer a claim, workers while they run it.
 */

/** Iterations that begin at once are known to be short, and mostly one waits while another is run: so many take one slot. */
const ITERATIONS_OF_SLOT = 4;

/** Slots of a command of which so many iterations are still to end. */
export function iterationSlots(left: number): number {
  return Math.max(1, Math.ceil(left / ITERATIONS_OF_SLOT));
}

/** Iterations of a command that are still to end and count; 1 for all commands whose iterations do not begin at once. */
export function iterationsLeft(loop: CommandLoop | undefined): number {
  if (loop?.at_once !== true) return 1;
  const { below = loop.from, above = [] } = loop.ended ?? {};
  return loop.from + loop.items.length - below - above.length;
}
