/**
 * Work that may be interrupted: it yields after each piece, and its driver may do other work before the next one. A server that
 * did all of it at once would answer no calls meanwhile.
 */
export type Pieces<T> = Generator<undefined, T, undefined>;

/** Does all of it without interruption. */
export function atOnce<T>(work: Pieces<T>): T {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
  }
}
