import { FlowError } from "../../../schema/words/errors.ts";

/** Ids of one reservation: 16 ms of the id space, and about a second of full load. */
const BLOCK = 65_536;
/** Number of remaining ids below which the next block is fetched, long before the last id is used. */
const LOW = BLOCK / 2;
/** A block that was reserved longer ago is thrown away: ids should show, roughly, when they were assigned. */
const STALE_MS = 5_000;

/** Ids for executions, events, commands and step runs, in increasing order. */
export interface IdAllocator {
  /** The next id. Throws `FlowError` UNAVAILABLE if no id is left: await {@link IdAllocator.ready} before a decision. */
  next(): number;
  /** Resolves when at least half a block is available, all of it above `floor`. */
  ready(floor?: number): Promise<void>;
  /** True when {@link IdAllocator.ready} need not be awaited. */
  isReady(floor?: number): boolean;
}

/**
 * Allocates ids in blocks: one statement for 65,536 ids instead of one each. `reserve` returns the last of `count` new ids,
 * which are above every id that any server has reserved before. So an execution that moves here from another server continues
 * with larger ids (`floor`); if necessary, the rest of an older block is thrown away.
 */
export function createIdAllocator(reserve: (count: number) => Promise<number>, now: () => number): IdAllocator {
  let following = 1;
  let last = 0;
  let reservedAt = 0;
  let fetching: Promise<void> | undefined;

  const left = () => last - following + 1;
  const fetch = () => {
    fetching ??= reserve(BLOCK)
      .then((id) => {
        following = id - BLOCK + 1;
        last = id;
        reservedAt = now();
      })
      .finally(() => {
        fetching = undefined;
      });
    return fetching;
  };
  const isReady = (floor = 0) => left() >= LOW && following > floor && now() - reservedAt < STALE_MS;

  return {
    next() {
      if (left() <= 0) throw new FlowError("UNAVAILABLE", "No id is left at the moment. Try again in a second");
      const id = following;
      following += 1;
      return id;
    },
    isReady,
    async ready(floor = 0) {
      // A fetch already under way may have begun before `floor` was known: then a second fetch is needed.
      for (let tries = 0; !isReady(floor) && tries < 3; tries += 1) await fetch();
      if (!isReady(floor) && following <= floor) {
        throw new FlowError("UNAVAILABLE", `The ids of the database are behind those that were given (${floor})`);
      }
    },
  };
}
