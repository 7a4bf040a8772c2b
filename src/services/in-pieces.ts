import { setImmediate } from "node:timers/promises";
import type { Pieces } from "../engine/program/pieces.ts";

/** How long work continues before other calls have their turn. One more piece may follow, so pieces must be short. */
const TURN_MS = 5;

/**
 * Does work piece by piece; what comes meanwhile is done in between, so that what the work reads must not change. Work that takes
 * longer than a turn ends with others having theirs: what follows it does not add to its last piece.
 */
export async function inPieces<T>(work: Pieces<T>): Promise<T> {
  let began = performance.now();
  let isLong = false;
  for (;;) {
    const { done, value } = work.next();
    if (performance.now() - began >= TURN_MS || (done === true && isLong)) {
      isLong = true;
      await setImmediate();
      began = performance.now();
    }
    if (done === true) return value;
  }
}
