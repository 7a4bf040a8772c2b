import type { ExecutionStore, Requirement } from "../../../ports/execution-store.ts";
import { type GroupRead, type GroupRoom, keyOf, type ReadyQueue } from "./ready-queue.ts";

/** Groups checked in one poll; the next poll continues after them. */
const GROUPS_MAX = 500;
/** Rows read in one statement. */
const ROWS_MAX = 10_000;
/** New commands of a group read by one poll: if that is not enough, the group is read again at once. */
const PAGE = 500;

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
export function createRefill({ store, ready, now, onFound, onFailed }: RefillDeps): Refill {
  /** Where the next poll begins. */
  let after: Requirement | undefined;
  let isReading = false;
  let isAsked = false;

  const read = async (rooms: readonly GroupRoom[]): Promise<number> => {
    if (rooms.length === 0) return 0;
    // From the oldest on: known commands are among them.
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

/** The first groups, as many as one statement may read. */
function bounded(rooms: readonly GroupRoom[]): GroupRoom[] {
  let rows = 0;
  const over = rooms.findIndex(({ known, room }, index) => {
    rows += known + room;
    return rows > ROWS_MAX && index > 0;
  });
  return over < 0 ? [...rooms] : rooms.slice(0, over);
}
