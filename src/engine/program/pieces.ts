/**
 * Work that may be interrupted: after each piece it yields, and its driver may do something else before the next one. A
 * server that did it at once would answer no calls meanwhile.
 */
export type Pieces<T> = Generator<undefined, T, undefined>;

/** Does all of it without an interruption. */
export function atOnce<T>(work: Pieces<T>): T {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
  }
}
