import type { ReadyCommand, Requirement } from "../../../ports/execution-store.ts";
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

/** Commands of one group kept in memory. What is beyond stays in the store, which is asked again when half of these are gone. */
export const GROUP_MAX = 2_000;
/** Commands of all groups together, after which a group gets no more than {@link GROUP_MIN}. */
export const READY_MAX = 10_000;
/** Room that every group has, however full the others are: commands that no worker can run must not block the rest. */
export const GROUP_MIN = 64;
/** Entries of one kind that are passed over while their executions are busy, before the search gives up. */
const SKIPPED_MAX = 64;

/** What was read of a group. */
export interface GroupRead {
  entries: readonly ReadyEntry[];
  /** The store has no more of it. */
  isAll: boolean;
  /** {@link GroupRoom.refused} before it was read. */
  refused: number;
}

/** How much more of a group there is room for. */
export interface GroupRoom {
  requirement: Requirement;
  /** In memory. */
  known: number;
  /** Beyond these. */
  room: number;
  /** Commands for which there was none so far: one more means that something was left out meanwhile. */
  refused: number;
}

/** Commands that wait, first come first served; first of all those that were given back. */
export interface ReadyQueue {
  /**
   * Adds one unless it is known, also under a later claim; false when it is left out: its group is full, or something older of it
   * is in the store alone. One that was claimed before is never left out: the store does not list it among those that wait.
   */
  add(entry: ReadyEntry): boolean;
  /** One of a group is in the store and not here: it was left out. */
  leftOut(requirement: Requirement): void;
  /** Adds what was read of a group from its oldest command on, and has not been known; gives how many. */
  addRead(requirement: Requirement, read: GroupRead): number;
  /** The oldest one that suits and that `judge` takes; it leaves the queue. */
  take(ability: Ability, judge: (entry: ReadyEntry) => Verdict): ReadyEntry | undefined;
  /** Whether any command of a group is there that a worker of this ability can run. */
  suits(ability: Ability): boolean;
  remove(commandId: string): void;
  has(commandId: string): boolean;
  size(): number;
  roomOf(requirement: Requirement): GroupRoom;
  /** Groups of which something was left out, and of which half is gone: the store is to be asked. */
  short(): GroupRoom[];
}

/** What a queue may be made with. */
export interface ReadyOptions {
  /** Default {@link GROUP_MAX}. */
  groupMax?: number;
  /** Default {@link READY_MAX}. */
  readyMax?: number;
  /** Default {@link GROUP_MIN}. */
  groupMin?: number;
  /** {@link ReadyQueue.short} has one more. */
  onShort?(): void;
}

interface Queued extends ReadyEntry {
  order: number;
}

interface Group {
  key: string;
  requirement: Requirement;
  /** Those that were claimed before. */
  again: Map<string, Queued>;
  fresh: Map<string, Queued>;
  /** Something of it was left out. */
  isCut: boolean;
  refused: number;
}

/**
 * The queue, in one group per requirement (kinds and labels): a worker that cannot run the ten thousand shell commands at its
 * head need not look at each of them, and they leave room for others.
 */
export function createReadyQueue(options: ReadyOptions = {}): ReadyQueue {
  const { groupMax = GROUP_MAX, readyMax = READY_MAX, groupMin = GROUP_MIN, onShort = () => undefined } = options;
  const groups = new Map<string, Group>();
  const groupOf = new Map<string, Group>();
  let order = 0;

  const sizeOf = ({ again, fresh }: Group) => again.size + fresh.size;
  const mostOf = () => (groupOf.size < readyMax ? groupMax : groupMin);
  const isShort = (group: Group) => group.isCut && sizeOf(group) <= mostOf() / 2;
  const roomIn = (group: Group): GroupRoom => ({
    requirement: group.requirement,
    known: sizeOf(group),
    room: Math.max(0, mostOf() - sizeOf(group)),
    refused: group.refused,
  });
  const forget = (group: Group) => {
    if (sizeOf(group) === 0 && !group.isCut) groups.delete(group.key);
  };
  const remove = (commandId: string) => {
    const group = groupOf.get(commandId);
    if (group === undefined) return;
    groupOf.delete(commandId);
    if (!group.again.delete(commandId)) group.fresh.delete(commandId);
    forget(group);
    if (isShort(group)) onShort();
  };
  const open = ({ kinds, labels }: Requirement): Group => {
    const key = keyOf({ kinds, labels });
    let group = groups.get(key);
    if (group === undefined) {
      group = { key, requirement: { kinds, labels }, again: new Map(), fresh: new Map(), isCut: false, refused: 0 };
      groups.set(key, group);
    }
    return group;
  };
  const put = (group: Group, entry: ReadyEntry) => {
    // What a full queue holds waits for long: the store has its body too.
    const { body: _, ...bare } = entry;
    const queued = { ...(groupOf.size < readyMax ? entry : bare), order };
    (entry.attempt > 0 ? group.again : group.fresh).set(entry.commandId, queued);
    groupOf.set(entry.commandId, group);
    order += 1;
  };
  /** True when it is there already, under this claim or a later one. */
  const isKnown = ({ commandId, attempt }: ReadyEntry) => {
    const group = groupOf.get(commandId);
    const known = group?.again.get(commandId) ?? group?.fresh.get(commandId);
    if (known === undefined) return false;
    if (known.attempt >= attempt) return true;
    remove(commandId);
    return false;
  };
  /** The first that `judge` takes; those that it drops are gone. */
  const firstOf = (group: Group, judge: (entry: ReadyEntry) => Verdict) => {
    let skipped = 0;
    for (const entries of [group.again, group.fresh]) {
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
      const group = open(entry);
      if (entry.attempt === 0 && (group.isCut || sizeOf(group) >= mostOf())) {
        group.isCut = true;
        group.refused += 1;
        return false;
      }
      put(group, entry);
      return true;
    },
    leftOut(requirement) {
      const group = open(requirement);
      group.isCut = true;
      group.refused += 1;
      if (isShort(group)) onShort();
    },
    addRead(requirement, { entries, isAll, refused }) {
      const group = open(requirement);
      let added = 0;
      let isWhole = isAll && group.refused === refused;
      for (const entry of entries) {
        if (isKnown(entry)) continue;
        if (sizeOf(group) >= mostOf()) {
          isWhole = false;
          break;
        }
        put(group, entry);
        added += 1;
      }
      group.isCut = !isWhole;
      forget(group);
      return added;
    },
    take(ability, judge) {
      let best: Queued | undefined;
      for (const group of groups.values()) {
        if (sizeOf(group) === 0 || !suits(group.requirement, ability)) continue;
        const [first] = group.again.size > 0 ? group.again.values() : group.fresh.values();
        if (best !== undefined && first !== undefined && isBefore(best, first)) continue;
        const found = firstOf(group, judge);
        if (found !== undefined && (best === undefined || isBefore(found, best))) best = found;
      }
      if (best === undefined) return undefined;
      remove(best.commandId);
      const { order: _, ...entry } = best;
      return entry;
    },
    suits: (ability) => [...groups.values()].some((group) => sizeOf(group) > 0 && suits(group.requirement, ability)),
    has: (commandId) => groupOf.has(commandId),
    remove,
    size: () => groupOf.size,
    roomOf(requirement) {
      const group = groups.get(keyOf(requirement));
      return group === undefined ? { requirement, known: 0, room: mostOf(), refused: 0 } : roomIn(group);
    },
    short: () => [...groups.values()].filter(isShort).map(roomIn),
  };
}

/** What was given back has waited before. */
function isBefore(left: Queued, right: Queued): boolean {
  const [leftAgain, rightAgain] = [left.attempt > 0, right.attempt > 0];
  return leftAgain === rightAgain ? left.order < right.order : leftAgain;
}

/** The same text for the same requirement. */
export function keyOf({ kinds, labels }: Requirement): string {
  return JSON.stringify([kinds, labels === null ? null : Object.entries(labels).sort(byName)]);
}

function byName([left]: [string, unknown], [right]: [string, unknown]): number {
  return left < right ? -1 : 1;
}

function suits({ kinds, labels }: Requirement, ability: Ability): boolean {
  if (ability.kinds !== undefined && !kinds.every((kind) => ability.kinds?.includes(kind))) return false;
  return labels === null || Object.keys(labels).every((key) => own(ability.labels, key) === labels[key]);
}
