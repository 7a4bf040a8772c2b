import type { ExecutionStore, Requirement } from "../../../ports/execution-store.ts";
import { type GroupRead, type GroupRoom, keyOf, type ReadyQueue } from "./ready-queue.ts";

/** Groups looked at in one poll; the next one goes on after them. */
const GROUPS_MAX = 500;
/** Rows read in one statement. */
const ROWS_MAX = 10_000;
/** New commands of a group that one poll reads: where it is short of them, it is asked again at once. */
const PAGE = 500;

/** What refilling needs. */
export interface RefillDeps {
  store: Pick<ExecutionStore, "pendingRequirements" | "pendingCommands">;
  ready: ReadyQueue;
  /** Milliseconds since 1970. */
  now(): number;
  /** There are commands that were not there before. */
  onFound(): void;
  /** The store could not be asked: the next poll does it. */
  onFailed(error: unknown): void;
}

/** Reads the commands that did not fit into the ready queue, and those whose notices this process missed. */
export interface Refill {
  /** Looks for commands that are not known here, in every group that has room; gives how many there were. */
  poll(): Promise<number>;
  /** Half of a group is gone of which something was left out: reads it again, one statement at a time. Never throws. */
  short(): void;
}

/** Makes it. */
export function createRefill({ store, ready, now, onFound, onFailed }: RefillDeps): Refill {
  /** Where the next poll begins. */
  let after: Requirement | undefined;
  let isReading = false;
  let isAsked = false;

  const read = async (rooms: readonly GroupRoom[]): Promise<number> => {
    if (rooms.length === 0) return 0;
    // From the oldest on: those that are known are among them.
    const wanted = rooms.map(({ requirement, known, room }) => ({ requirement, limit: known + room }));
    const commands = await store.pendingCommands(wanted);
    const reads = new Map<string, GroupRead & { entries: object[] }>();
    for (const command of commands) {
      const key = keyOf(command);
      const of = reads.get(key) ?? { entries: [], isAll: false, refused: 0 };
      reads.set(key, of);
      of.entries.push({ ...command, readyAt: now() });
    }
    return rooms.reduce((found, { requirement, known, room, refused }) => {
      const entries = reads.get(keyOf(requirement))?.entries ?? [];
      return found + ready.addRead(requirement, { entries, isAll: entries.length < known + room, refused });
    }, 0);
  };

  const readShort = async () => {
    isReading = true;
    try {
      while (isAsked) {
        isAsked = false;
        if ((await read(bounded(ready.short()))) > 0) onFound();
      }
    } catch (error) {
      onFailed(error);
    }
    isReading = false;
  };

  const refill: Refill = {
    async poll() {
      const requirements = await store.pendingRequirements(after, GROUPS_MAX);
      const listed = requirements.map(ready.roomOf).filter(({ known, room }) => room > known);
      const rooms = bounded(listed.map((place) => ({ ...place, room: Math.min(place.room, PAGE) })));
      const isEnd = requirements.length < GROUPS_MAX && rooms.length === listed.length;
      after = isEnd ? undefined : rooms.length < listed.length ? rooms.at(-1)?.requirement : requirements.at(-1);
      const found = await read(rooms);
      // Also those that others have emptied: what comes to be in them is not left out any more.
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

/** The first ones, as many as one statement may read. */
function bounded(rooms: readonly GroupRoom[]): GroupRoom[] {
  let rows = 0;
  const over = rooms.findIndex(({ known, room }, index) => {
    rows += known + room;
    return rows > ROWS_MAX && index > 0;
  });
  return over < 0 ? [...rooms] : rooms.slice(0, over);
}
