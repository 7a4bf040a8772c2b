import type { ExecutionStore, PendingWanted, Requirement } from "../../../ports/execution-store.ts";
import { type GroupRoom, keyOf, type ReadyEntry, type ReadyQueue } from "./ready-queue.ts";

/** Groups checked in one poll; the next poll continues after them. */
const GROUPS_MAX = 500;
/** Rows read in one statement. */
const ROWS_MAX = 10_000;
/** New commands of a group read by one poll: if that is not enough, the group is read again at once. */
const PAGE = 500;
/**
 * Commands of a group, known ones among them, that one poll reads again: one that has a smaller id than the newest known, and of which
 * no notice came, is found when its turn comes.
 */
const CHECKED = 100;

/** What refilling needs. */
export interface RefillDeps {
  store: Pick<ExecutionStore, "pendingRequirements" | "pendingCommands">;
  ready: ReadyQueue;
  /** Milliseconds since 1970. */
  now(): number;
  /** Commands were found that were not in the queue. */
  onFound(): void;
  /** The store could not be read: the next poll tries again. */
  onFailed(error: unknown): void;
}

/** Reads the commands that did not fit into the ready queue, and those whose notices this process missed. */
export interface Refill {
  /** Looks for unknown commands in every group that has room; returns their number. */
  poll(): Promise<number>;
  /** A group that left something out is half empty: reads it again, one statement at a time. Never throws. */
  short(): void;
}

/** Creates the refill of a ready queue. */
export function createRefill(deps: RefillDeps): Refill {
  const { store, ready, onFound, onFailed } = deps;
  /** Where the next poll begins. */
  let after: Requirement | undefined;
  let isReading = false;
  let isAsked = false;
  const look = createLook(deps);

  const readShort = async () => {
    isReading = true;
    try {
      while (isAsked) {
        isAsked = false;
        const rooms = bounded(ready.short(), ({ known, room }) => known + room);
        if ((await readWhole(deps, rooms)) > 0) onFound();
      }
    } catch (error) {
      onFailed(error);
    }
    isReading = false;
  };

  const refill: Refill = {
    async poll() {
      const requirements = await store.pendingRequirements(after, GROUPS_MAX);
      // Those of which something was left out are read below, when they are half empty.
      const listed = requirements.map(ready.roomOf).filter(({ known, room, isCut }) => !isCut && room > known);
      const rooms = bounded(listed, (place) => newsOf(place) + CHECKED);
      const isEnd = requirements.length < GROUPS_MAX && rooms.length === listed.length;
      after = isEnd ? undefined : rooms.length < listed.length ? rooms.at(-1)?.requirement : requirements.at(-1);
      const found = await look(rooms);
      // Also groups that workers have emptied: commands that become ready in them are then no longer left out.
      if (ready.short().length > 0) refill.short();
      return found;
    },
    short() {
      isAsked = true;
      if (!isReading) void readShort();
    },
  };
  return refill;
}

/** Reads groups from the oldest command on, known ones among them, until they are full; returns the number of new ones. */
async function readWhole(deps: RefillDeps, rooms: readonly GroupRoom[]): Promise<number> {
  const wanted = rooms.map(({ requirement, known, room }) => ({ requirement, limit: known + room }));
  const found = await readGroups(deps, wanted);
  return rooms.reduce((sum, { requirement, known, room, refused }) => {
    const entries = found.get(keyOf(requirement)) ?? [];
    return sum + deps.ready.addRead(requirement, { entries, isAll: entries.length < known + room, refused });
  }, 0);
}

/** Looks for what is newer than all that is known of groups, and at the next of what is older; returns the number of new ones. */
function createLook(deps: RefillDeps): (rooms: readonly GroupRoom[]) => Promise<number> {
  /** Where the next look at the older commands of a group begins; of the others: at the oldest. */
  const places = new Map<string, number>();
  return async (rooms) => {
    const wanted = rooms.flatMap((place): PendingWanted[] => {
      const { requirement, newest } = place;
      const news = { requirement, after: String(newest), limit: newsOf(place) };
      const older = { requirement, after: String(places.get(keyOf(requirement)) ?? 0), limit: CHECKED };
      return newest === 0 ? [news] : [news, older];
    });
    const found = await readGroups(deps, wanted);
    return rooms.reduce((sum, place) => {
      const { requirement, newest } = place;
      const key = keyOf(requirement);
      const entries = found.get(key) ?? [];
      const older = entries.filter(({ commandId }) => Number(commandId) <= newest);
      const last = older.at(-1);
      // The next look begins at the oldest again.
      if (older.length < CHECKED || last === undefined) places.delete(key);
      else places.set(key, Number(last.commandId));
      return sum + deps.ready.addFound(requirement, entries, entries.length - older.length >= newsOf(place));
    }, 0);
  };
}

async function readGroups(
  { store, now }: RefillDeps,
  wanted: readonly PendingWanted[],
): Promise<Map<string, ReadyEntry[]>> {
  const found = new Map<string, ReadyEntry[]>();
  if (wanted.length === 0) return found;
  for (const command of await store.pendingCommands(wanted)) {
    const key = keyOf(command);
    const of = found.get(key) ?? [];
    found.set(key, of);
    of.push({ ...command, readyAt: now() });
  }
  return found;
}

/** New commands of a group that one poll reads. */
function newsOf({ room }: GroupRoom): number {
  return Math.min(room, PAGE);
}

/** The first groups, as many as one statement may read. */
function bounded(rooms: readonly GroupRoom[], rowsOf: (place: GroupRoom) => number): GroupRoom[] {
  let rows = 0;
  const over = rooms.findIndex((place, index) => {
    rows += rowsOf(place);
    return rows > ROWS_MAX && index > 0;
  });
  return over < 0 ? [...rooms] : rooms.slice(0, over);
}
