import type { ReadyCommand, Requirement } from "../../../ports/execution-store.ts";
import { POOL_LABEL, poolOf } from "../../../schema/rules/pool-label.ts";
import type { Command } from "../../../schema/words/command.ts";
import { type JsonObject, own } from "../../../schema/words/json.ts";
import type { BatchTrace } from "./change-set.ts";

/** A command that waits for a worker, and the time since when it waits. */
export interface ReadyEntry extends ReadyCommand {
  /** When it became ready, milliseconds; queue ages are measured from here. */
  readyAt: number;
  /** The command as sent to the worker, if it is in memory. */
  body?: Command;
  /** The batch that it follows from, if this process received it. */
  batch?: BatchTrace;
  /**
   * When its execution was loaded again because of it, milliseconds since 1970: if the new state still does not contain it, there is no
   * such command.
   */
  askedAt?: number;
  /** A round has added it that is not written yet, and the store has not named it: if the write is refused, there is no such command. */
  isTentative?: true;
}

/** The kinds and labels of a worker. */
export interface Ability {
  /** Undefined: every kind. */
  kinds: readonly string[] | undefined;
  labels: JsonObject;
  /** Whether it runs the commands of this pool; of no pool: undefined. Absent: of all. */
  isOfPool?(pool: string | undefined): boolean;
}

/** Whether an entry can be taken now: yes, not at the moment, or never again. */
export type Verdict = "take" | "skip" | "drop";

/**
 * Commands of one group kept in memory. Further commands stay in the store, which is queried again when half of these are gone.
 */
export const GROUP_MAX = 2_000;
/** Total of commands above which a group gets no more than {@link GROUP_MIN}. */
export const READY_MAX = 10_000;
/** Places reserved for every group, however full the others are: commands that no worker can run must not block the rest. */
export const GROUP_MIN = 64;
/** Entries of a group that are passed over while their executions are busy, before the search gives up. */
const SKIPPED_MAX = 64;

/** The result of reading a group from the store. */
export interface GroupRead {
  entries: readonly ReadyEntry[];
  /** The store has no more of it. */
  isAll: boolean;
  /** {@link GroupRoom.refused} before it was read. */
  refused: number;
}

/** How many more commands of a group fit. */
export interface GroupRoom {
  requirement: Requirement;
  /** In memory. */
  known: number;
  /** Further commands that fit. */
  room: number;
  /** Commands that did not fit so far: if this number has grown, something was left out meanwhile. */
  refused: number;
  /** Something was left out, and is only in the store. */
  isCut: boolean;
  /** Largest id of those that were added so far, as far as it is remembered; else 0. */
  newest: number;
}

/** Waiting commands, first come first served; commands that were given back come first. */
export interface ReadyQueue {
  /**
   * Adds a command unless it is known, also under a later claim; false if it is left out: its group is full, or an older
   * command of the group is only in the store. A command that was claimed before is never left out: the store does not list it
   * among the waiting commands.
   */
  add(entry: ReadyEntry): boolean;
  /** A command of this group is in the store and not here: it was left out. */
  leftOut(requirement: Requirement): void;
  /** Adds the commands read from a group, from its oldest on, that were not known; returns their number. */
  addRead(requirement: Requirement, read: GroupRead): number;
  /** Adds those of the commands that were not known, and returns their number. `isMore`: the store has more that were not read. */
  addFound(requirement: Requirement, entries: readonly ReadyEntry[], isMore: boolean): number;
  /** The oldest command that suits and that `judge` takes; it leaves the queue. */
  take(ability: Ability, judge: (entry: ReadyEntry) => Verdict): ReadyEntry | undefined;
  /** Whether the queue has a command that a worker with this ability can run. */
  suits(ability: Ability): boolean;
  remove(commandId: string): void;
  /**
   * The round that has added this command has ended. If it was not written, the command leaves, unless the store has named it since:
   * another server may have done the same, and its notice has come first.
   */
  settle(commandId: string, isWritten: boolean): void;
  has(commandId: string): boolean;
  size(): number;
  roomOf(requirement: Requirement): GroupRoom;
  /** Groups of which something was left out and half is gone: query the store again. */
  short(): GroupRoom[];
}

/** Options of a queue. */
export interface ReadyOptions {
  /** Default {@link GROUP_MAX}. */
  groupMax?: number;
  /** Default {@link READY_MAX}. */
  readyMax?: number;
  /** Default {@link GROUP_MIN}. */
  groupMin?: number;
  /** {@link ReadyQueue.short} has one more group. */
  onShort?(): void;
  /** Called whenever a command with labels was added. */
  labelled?: ReadonlySet<() => void>;
}

interface Queued extends ReadyEntry {
  order: number;
}

interface Group {
  key: string;
  requirement: Requirement;
  /** Commands that were claimed before. */
  again: Map<string, Queued>;
  fresh: Map<string, Queued>;
  /** Some of its commands were left out. */
  isCut: boolean;
  refused: number;
  newest: number;
}

/**
 * The queue, in one group per requirement (kinds and labels): a worker that cannot run the ten thousand shell commands at its
 * head need not look at each of them, and they leave room for others.
 */
export function createReadyQueue(options: ReadyOptions = {}): ReadyQueue {
  const groups = createGroups(options);
  return {
    add(entry) {
      if (groups.isKnown(entry)) return true;
      const group = groups.open(entry);
      if (entry.attempt === 0 && (group.isCut || sizeOf(group) >= groups.most())) {
        group.isCut = true;
        group.refused += 1;
        return false;
      }
      groups.put(group, entry);
      return true;
    },
    leftOut(requirement) {
      const group = groups.open(requirement);
      group.isCut = true;
      group.refused += 1;
      if (groups.isShort(group)) options.onShort?.();
    },
    addRead(requirement, { entries, isAll, refused }) {
      const group = groups.open(requirement);
      const { added, fit } = addUnknown(groups, group, entries);
      group.isCut = !(fit && isAll && group.refused === refused);
      groups.forget(group);
      return added;
    },
    addFound(requirement, entries, isMore) {
      const group = groups.open(requirement);
      const { added, fit } = addUnknown(groups, group, entries);
      if (isMore || !fit) group.isCut = true;
      groups.forget(group);
      return added;
    },
    take(ability, judge) {
      let best: Queued | undefined;
      for (const group of groups.all()) {
        if (sizeOf(group) === 0 || !suits(group.requirement, ability)) continue;
        const [first] = group.again.size > 0 ? group.again.values() : group.fresh.values();
        if (best !== undefined && first !== undefined && isBefore(best, first)) continue;
        const found = firstOf(group, judge, groups.remove);
        if (found !== undefined && (best === undefined || isBefore(found, best))) best = found;
      }
      if (best === undefined) return undefined;
      groups.remove(best.commandId);
      const { order: _, ...entry } = best;
      return entry;
    },
    suits: (ability) => hasFor(groups.all(), ability),
    has: groups.has,
    remove: groups.remove,
    settle(commandId, isWritten) {
      const entry = groups.entry(commandId);
      if (entry?.isTentative === undefined) return;
      if (isWritten) delete entry.isTentative;
      else groups.remove(commandId);
    },
    size: groups.size,
    roomOf(requirement) {
      const group = groups.find(requirement);
      const none = { requirement, known: 0, room: groups.most(), refused: 0, isCut: false, newest: 0 };
      return group === undefined ? none : roomIn(groups, group);
    },
    short: () => [...groups.all()].filter(groups.isShort).map((group) => roomIn(groups, group)),
  };
}

function roomIn(groups: Groups, group: Group): GroupRoom {
  const { requirement, refused, isCut, newest } = group;
  const known = sizeOf(group);
  return { requirement, known, room: Math.max(0, groups.most() - known), refused, isCut, newest };
}

/** Adds the commands that are not known, until the group is full. */
function addUnknown(groups: Groups, group: Group, entries: readonly ReadyEntry[]): { added: number; fit: boolean } {
  let added = 0;
  for (const entry of entries) {
    if (groups.isKnown(entry)) continue;
    if (sizeOf(group) >= groups.most()) return { added, fit: false };
    groups.put(group, entry);
    added += 1;
  }
  return { added, fit: true };
}

/** The groups of a queue, and which commands are in them. */
interface Groups {
  all(): Iterable<Group>;
  /** Undefined if it is empty and nothing was left out. */
  find(requirement: Requirement): Group | undefined;
  /** The group of a requirement, new if necessary. */
  open(requirement: Requirement): Group;
  /** Removes a group that is empty and of which nothing was left out. */
  forget(group: Group): void;
  put(group: Group, entry: ReadyEntry): void;
  remove(commandId: string): void;
  /** True if it is already there, under this claim or a later one. */
  isKnown(entry: ReadyEntry): boolean;
  entry(commandId: string): Queued | undefined;
  has(commandId: string): boolean;
  /** Commands of all groups. */
  size(): number;
  /** Commands that one group may have now. */
  most(): number;
  isShort(group: Group): boolean;
}

/** No groups yet. */
function createGroups({
  groupMax = GROUP_MAX,
  readyMax = READY_MAX,
  groupMin = GROUP_MIN,
  onShort,
  labelled = new Set(),
}: ReadyOptions): Groups {
  const groups = new Map<string, Group>();
  const groupOf = new Map<string, Group>();
  let order = 0;
  /** Commands in the queue with their bodies; those that were read from the store have none. */
  let bodies = 0;

  const most = () => (groupOf.size < readyMax ? groupMax : groupMin);
  const isShort = (group: Group) => group.isCut && sizeOf(group) <= most() / 2;
  const forget = (group: Group) => {
    if (sizeOf(group) === 0 && !group.isCut) groups.delete(group.key);
  };
  const entryOf = (commandId: string) => {
    const group = groupOf.get(commandId);
    return group?.again.get(commandId) ?? group?.fresh.get(commandId);
  };
  const remove = (commandId: string) => {
    const group = groupOf.get(commandId);
    if (group === undefined) return;
    const entry = entryOf(commandId);
    groupOf.delete(commandId);
    if (entry?.body !== undefined) bodies -= 1;
    if (!group.again.delete(commandId)) group.fresh.delete(commandId);
    forget(group);
    if (isShort(group)) onShort?.();
  };
  return {
    all: () => groups.values(),
    find: (requirement) => groups.get(keyOf(requirement)),
    open({ kinds, labels }) {
      const key = keyOf({ kinds, labels });
      const group = groups.get(key) ?? emptyGroup(key, { kinds, labels });
      groups.set(key, group);
      return group;
    },
    forget,
    put(group, entry) {
      // Among many bodies those of long groups are left out: they wait for long, and the store has them too. Without its body a
      // command costs a statement before it can be claimed.
      const keepsBody = bodies < readyMax || (sizeOf(group) < groupMin && bodies < 2 * readyMax);
      const { body, ...bare } = entry;
      if (body !== undefined && keepsBody) bodies += 1;
      const queued = { ...(keepsBody ? entry : bare), order };
      (entry.attempt > 0 ? group.again : group.fresh).set(entry.commandId, queued);
      groupOf.set(entry.commandId, group);
      group.newest = Math.max(group.newest, Number(entry.commandId));
      order += 1;
      if (entry.labels !== null) for (const look of labelled) look();
    },
    remove,
    isKnown({ commandId, attempt, isTentative }) {
      const known = entryOf(commandId);
      if (known === undefined) return false;
      if (known.attempt === attempt && isTentative === undefined) delete known.isTentative;
      if (known.attempt >= attempt) return true;
      remove(commandId);
      return false;
    },
    entry: entryOf,
    has: (commandId) => groupOf.has(commandId),
    size: () => groupOf.size,
    ...{ most, isShort },
  };
}

function emptyGroup(key: string, requirement: Requirement): Group {
  return { key, requirement, again: new Map(), fresh: new Map(), isCut: false, refused: 0, newest: 0 };
}

function sizeOf({ again, fresh }: Group): number {
  return again.size + fresh.size;
}

/** The first entry of a group that `judge` takes; entries that it drops are passed to `remove`. */
function firstOf(
  group: Group,
  judge: (entry: ReadyEntry) => Verdict,
  remove: (commandId: string) => void,
): Queued | undefined {
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
}

/** Commands that were given back come first: they have already waited. */
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

function hasFor(groups: Iterable<Group>, ability: Ability): boolean {
  for (const group of groups) if (sizeOf(group) > 0 && suits(group.requirement, ability)) return true;
  return false;
}

function suits({ kinds, labels }: Requirement, ability: Ability): boolean {
  if (ability.kinds !== undefined && !kinds.every((kind) => ability.kinds?.includes(kind))) return false;
  if (ability.isOfPool !== undefined && !ability.isOfPool(poolOf(labels))) return false;
  if (labels === null) return true;
  return Object.keys(labels).every((key) => key === POOL_LABEL || own(ability.labels, key) === labels[key]);
}
