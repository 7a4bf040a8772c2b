import type { ReadyCommand } from "../ports/execution-store.ts";
import type { Command } from "../schema/command.ts";
import { type JsonObject, own } from "../schema/json.ts";
import type { BatchTrace } from "./draft.ts";

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

/** Commands kept in memory. What is beyond stays in the store, which is asked again when half of these are gone. */
export const READY_MAX = 10_000;
/** Entries of one kind that are passed over while their executions are busy, before the search gives up. */
const SKIPPED_MAX = 64;

/** Commands that wait, first come first served. */
export interface ReadyCommands {
  /** Adds one unless it is known, also under a later claim; false when there is no room for it. */
  add(entry: ReadyEntry): boolean;
  /** The oldest one that suits and that `judge` takes; it leaves the queue. */
  take(ability: Ability, judge: (entry: ReadyEntry) => Verdict): ReadyEntry | undefined;
  has(commandId: string): boolean;
  remove(commandId: string): void;
  size(): number;
}

/**
 * The queue, in one lane per requirement (kinds and labels): whoever cannot run the ten thousand shell commands at its head
 * need not look at each of them.
 */
export function createReadyCommands(): ReadyCommands {
  const lanes = new Map<string, Map<string, ReadyEntry & { order: number }>>();
  const laneOf = new Map<string, string>();
  let order = 0;

  const remove = (commandId: string) => {
    const key = laneOf.get(commandId);
    if (key === undefined) return;
    laneOf.delete(commandId);
    const lane = lanes.get(key);
    lane?.delete(commandId);
    if (lane?.size === 0) lanes.delete(key);
  };

  /** The first that `judge` takes; those that it drops are gone. */
  const firstOf = (lane: Map<string, ReadyEntry & { order: number }>, judge: (entry: ReadyEntry) => Verdict) => {
    let skipped = 0;
    for (const entry of lane.values()) {
      const verdict = judge(entry);
      if (verdict === "take") return entry;
      if (verdict === "drop") remove(entry.commandId);
      else skipped += 1;
      if (skipped > SKIPPED_MAX) return undefined;
    }
    return undefined;
  };

  return {
    add(entry) {
      const known = lanes.get(laneOf.get(entry.commandId) ?? "")?.get(entry.commandId);
      if (known !== undefined && known.attempt >= entry.attempt) return true;
      if (known !== undefined) remove(entry.commandId);
      if (laneOf.size >= READY_MAX) return false;
      const key = requirement(entry);
      const lane = lanes.get(key) ?? new Map();
      lanes.set(key, lane);
      lane.set(entry.commandId, { ...entry, order });
      laneOf.set(entry.commandId, key);
      order += 1;
      return true;
    },
    take(ability, judge) {
      let best: (ReadyEntry & { order: number }) | undefined;
      for (const lane of lanes.values()) {
        const [sample] = lane.values();
        if (sample === undefined || !suits(sample, ability)) continue;
        if (best !== undefined && sample.order > best.order) continue;
        const found = firstOf(lane, judge);
        if (found !== undefined && (best === undefined || found.order < best.order)) best = found;
      }
      if (best !== undefined) remove(best.commandId);
      return best;
    },
    has: (commandId) => laneOf.has(commandId),
    remove,
    size: () => laneOf.size,
  };
}

function requirement({ kinds, labels }: ReadyCommand): string {
  return JSON.stringify([[...kinds].sort(), labels === null ? null : Object.entries(labels).sort()]);
}

function suits({ kinds, labels }: ReadyCommand, ability: Ability): boolean {
  if (ability.kinds !== undefined && !kinds.every((kind) => ability.kinds?.includes(kind))) return false;
  return labels === null || Object.keys(labels).every((key) => own(ability.labels, key) === labels[key]);
}
