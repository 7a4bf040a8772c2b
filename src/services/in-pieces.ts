import { setImmediate } from "node:timers/promises";
import type { Pieces } from "../language/words/pieces.ts";

/** How long work continues before other calls have their turn. One more piece may follow, so pieces must be short. */
const TURN_MS = 5;

/**
 * Works through items piece by piece and lets other work run in between, so the data it reads must not change. After work that
 * takes longer than one turn it yields once more, so that the code that follows does not extend the last piece.
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
