import type { CommandLane, ReadyCommand } from "../../../ports/execution-store.ts";
import type { Command } from "../../../schema/words/command.ts";
import { type JsonObject, own } from "../../../schema/words/json.ts";
import type { BatchTrace } from "./change-set.ts";

/** A command that waits for a worker, and since when. */
export interface ReadyEntry extends ReadyCommand {
  /** When it became ready, milliseconds; what queue ages are measured from. */
  readyAt: number;
  /** What the worker gets, where it is at hand. */
  body?: Command;
  /** The batch that it follows from, where that came to this process. */
  batch?: BatchTrace;
  /** Its execution was loaded anew because of it: if that still does not know of it, there is no such command. */
  isAsked?: boolean;
}

/** What a worker can do. */
export interface Ability {
  /** Undefined: every kind. */
  kinds: readonly string[] | undefined;
  labels: JsonObject;
}

/** Whether an entry can be taken now: yes, not at the moment, or never again. */
export type Verdict = "take" | "skip" | "drop";

/** Commands of one lane kept in memory. What is beyond stays in the store, which is asked again when half of these are gone. */
export const LANE_MAX = 2_000;
/** Commands of all lanes together, after which a lane gets no more than {@link LANE_MIN}. */
export const READY_MAX = 10_000;
/** Room that every lane has, however full the others are: what nobody can run keeps nobody from running the rest. */
export const LANE_MIN = 64;
/** Entries of one kind that are passed over while their executions are busy, before the search gives up. */
const SKIPPED_MAX = 64;

/** What was read of a lane. */
export interface LaneRead {
  entries: readonly ReadyEntry[];
  /** The store has no more of it. */
  isAll: boolean;
  /** {@link LaneRoom.refused} before it was read. */
  refused: number;
}

/** How much more of a lane there is room for. */
export interface LaneRoom {
  lane: CommandLane;
  /** In memory. */
  known: number;
  /** Beyond these. */
  room: number;
  /** Commands for which there was none so far: one more means that something was left out meanwhile. */
  refused: number;
}

/** Commands that wait, first come first served; first of all those that were given back. */
export interface ReadyCommands {
  /**
   * Adds one unless it is known, also under a later claim; false when it is left out: its lane is full, or something older of it
   * is in the store alone. One that was claimed before is never left out: the store does not list it among those that wait.
   */
  add(entry: ReadyEntry): boolean;
  /** One of a lane is in the store and not here: it was left out. */
  leftOut(lane: CommandLane): void;
  /** Adds what was read of a lane from its oldest command on, and has not been known; gives how many. */
  addRead(lane: CommandLane, read: LaneRead): number;
  /** The oldest one that suits and that `judge` takes; it leaves the queue. */
  take(ability: Ability, judge: (entry: ReadyEntry) => Verdict): ReadyEntry | undefined;
  /** Whether any command of a lane is there that a worker of this ability can run. */
  suits(ability: Ability): boolean;
  remove(commandId: string): void;
  has(commandId: string): boolean;
  size(): number;
  roomOf(lane: CommandLane): LaneRoom;
  /** Lanes of which something was left out, and of which half is gone: the store is to be asked. */
  short(): LaneRoom[];
}

/** What a queue may be made with. */
export interface ReadyOptions {
  /** Default {@link LANE_MAX}. */
  laneMax?: number;
  /** Default {@link READY_MAX}. */
  readyMax?: number;
  /** Default {@link LANE_MIN}. */
  laneMin?: number;
  /** {@link ReadyCommands.short} has one more. */
  onShort?(): void;
}

interface Queued extends ReadyEntry {
  order: number;
}

interface Lane {
  key: string;
  lane: CommandLane;
  /** Those that were claimed before. */
  again: Map<string, Queued>;
  fresh: Map<string, Queued>;
  /** Something of it was left out. */
  isCut: boolean;
  refused: number;
}

/**
 * The queue, in one lane per requirement (kinds and labels): whoever cannot run the ten thousand shell commands at its head
 * need not look at each of them, and they leave room for others.
 */
export function createReadyCommands(options: ReadyOptions = {}): ReadyCommands {
  const { laneMax = LANE_MAX, readyMax = READY_MAX, laneMin = LANE_MIN, onShort = () => undefined } = options;
  const lanes = new Map<string, Lane>();
  const laneOf = new Map<string, Lane>();
  let order = 0;

  const sizeOf = ({ again, fresh }: Lane) => again.size + fresh.size;
  const mostOf = () => (laneOf.size < readyMax ? laneMax : laneMin);
  const isShort = (lane: Lane) => lane.isCut && sizeOf(lane) <= mostOf() / 2;
  const roomIn = (lane: Lane): LaneRoom => ({
    lane: lane.lane,
    known: sizeOf(lane),
    room: Math.max(0, mostOf() - sizeOf(lane)),
    refused: lane.refused,
  });
  const forget = (lane: Lane) => {
    if (sizeOf(lane) === 0 && !lane.isCut) lanes.delete(lane.key);
  };
  const remove = (commandId: string) => {
    const lane = laneOf.get(commandId);
    if (lane === undefined) return;
    laneOf.delete(commandId);
    if (!lane.again.delete(commandId)) lane.fresh.delete(commandId);
    forget(lane);
    if (isShort(lane)) onShort();
  };
  const open = ({ kinds, labels }: CommandLane): Lane => {
    const key = keyOf({ kinds, labels });
    let lane = lanes.get(key);
    if (lane === undefined) {
      lane = { key, lane: { kinds, labels }, again: new Map(), fresh: new Map(), isCut: false, refused: 0 };
      lanes.set(key, lane);
    }
    return lane;
  };
  const put = (lane: Lane, entry: ReadyEntry) => {
    // What a full queue holds waits for long: the store has its body too.
    const { body: _, ...bare } = entry;
    const queued = { ...(laneOf.size < readyMax ? entry : bare), order };
    (entry.attempt > 0 ? lane.again : lane.fresh).set(entry.commandId, queued);
    laneOf.set(entry.commandId, lane);
    order += 1;
  };
  /** True when it is there already, under this claim or a later one. */
  const isKnown = ({ commandId, attempt }: ReadyEntry) => {
    const lane = laneOf.get(commandId);
    const known = lane?.again.get(commandId) ?? lane?.fresh.get(commandId);
    if (known === undefined) return false;
    if (known.attempt >= attempt) return true;
    remove(commandId);
    return false;
  };
  /** The first that `judge` takes; those that it drops are gone. */
  const firstOf = (lane: Lane, judge: (entry: ReadyEntry) => Verdict) => {
    let skipped = 0;
    for (const entries of [lane.again, lane.fresh]) {
      for (const entry of entries.values()) {
        const verdict = judge(entry);
        if (verdict === "take") return entry;
        if (verdict === "drop") remove(entry.commandId);
        else skipped += 1;
        if (skipped > SKIPPED_MAX) break;
      }
    }
    return undefined;
  };

  return {
    add(entry) {
      if (isKnown(entry)) return true;
      const lane = open(entry);
      if (entry.attempt === 0 && (lane.isCut || sizeOf(lane) >= mostOf())) {
        lane.isCut = true;
        lane.refused += 1;
        return false;
      }
      put(lane, entry);
      return true;
    },
    leftOut(requirement) {
      const lane = open(requirement);
      lane.isCut = true;
      lane.refused += 1;
      if (isShort(lane)) onShort();
    },
    addRead(requirement, { entries, isAll, refused }) {
      const lane = open(requirement);
      let added = 0;
      let isWhole = isAll && lane.refused === refused;
      for (const entry of entries) {
        if (isKnown(entry)) continue;
        if (sizeOf(lane) >= mostOf()) {
          isWhole = false;
          break;
        }
        put(lane, entry);
        added += 1;
      }
      lane.isCut = !isWhole;
      forget(lane);
      return added;
    },
    take(ability, judge) {
      let best: Queued | undefined;
      for (const lane of lanes.values()) {
        if (sizeOf(lane) === 0 || !suits(lane.lane, ability)) continue;
        const [first] = lane.again.size > 0 ? lane.again.values() : lane.fresh.values();
        if (best !== undefined && first !== undefined && isBefore(best, first)) continue;
        const found = firstOf(lane, judge);
        if (found !== undefined && (best === undefined || isBefore(found, best))) best = found;
      }
      if (best === undefined) return undefined;
      remove(best.commandId);
      const { order: _, ...entry } = best;
      return entry;
    },
    suits: (ability) => [...lanes.values()].some((lane) => sizeOf(lane) > 0 && suits(lane.lane, ability)),
    has: (commandId) => laneOf.has(commandId),
    remove,
    size: () => laneOf.size,
    roomOf(requirement) {
      const lane = lanes.get(keyOf(requirement));
      return lane === undefined ? { lane: requirement, known: 0, room: mostOf(), refused: 0 } : roomIn(lane);
    },
    short: () => [...lanes.values()].filter(isShort).map(roomIn),
  };
}

/** What was given back has waited before. */
function isBefore(left: Queued, right: Queued): boolean {
  const [leftAgain, rightAgain] = [left.attempt > 0, right.attempt > 0];
  return leftAgain === rightAgain ? left.order < right.order : leftAgain;
}

/** The same text for the same requirement. */
export function keyOf({ kinds, labels }: CommandLane): string {
  return JSON.stringify([kinds, labels === null ? null : Object.entries(labels).sort(byName)]);
}

function byName([left]: [string, unknown], [right]: [string, unknown]): number {
  return left < right ? -1 : 1;
}

function suits({ kinds, labels }: CommandLane, ability: Ability): boolean {
  if (ability.kinds !== undefined && !kinds.every((kind) => ability.kinds?.includes(kind))) return false;
  return labels === null || Object.keys(labels).every((key) => own(ability.labels, key) === labels[key]);
}
