import { NOTICE_COMMANDS_MAX, type Notice } from "../../schema/words/notice.ts";

/** Notices that are to be sent. What says the same is kept once. */
export interface NatsOutbox {
  /** Adds a notice, also one that was taken and could not be sent; returns how many of the oldest ids had to be dropped. */
  add(notice: Notice): number;
  /** Takes at most `limit` ids out, the oldest first, as few notices as can be. */
  take(limit: number): Notice[];
  /** Ids that wait. */
  size(): number;
}

/**
 * An outbox of at most `capacity` ids. While a message is under way, new notices are merged: commands of many commits become
 * one notice, and of each execution only the newest event is kept.
 */
export function createNatsOutbox(capacity: number): NatsOutbox {
  // A Map gives its keys in the order in which they were added.
  const waiting = new Map<string, Notice>();
  return {
    add(notice) {
      for (const single of singles(notice)) {
        const key = keyOf(single);
        waiting.set(key, newer(single, waiting.get(key)));
      }
      let dropped = 0;
      for (const key of waiting.keys()) {
        if (waiting.size <= capacity) break;
        waiting.delete(key);
        dropped += 1;
      }
      return dropped;
    },
    take(limit) {
      const taken: Notice[] = [];
      for (const [key, notice] of waiting) {
        if (taken.length === limit) break;
        waiting.delete(key);
        taken.push(notice);
      }
      return joinCommands(taken);
    },
    size: () => waiting.size,
  };
}

function singles(notice: Notice): Notice[] {
  if (notice.kind !== "commands") return [notice];
  return notice.commandIds.map((id) => ({ kind: "commands", commandIds: [id] }));
}

function keyOf(notice: Notice): string {
  return notice.kind === "commands" ? `commands ${notice.commandIds[0]}` : `${notice.kind} ${notice.executionId}`;
}

/**
 * Two notices of one key differ in the event alone, and in whether the execution has ended: what comes after its end does not
 * undo that. Ids have no leading zeros, so that a longer one is a greater one.
 */
function newer(notice: Notice, other: Notice | undefined): Notice {
  if (notice.kind !== "execution" || other?.kind !== "execution") return notice;
  const [left, right] = [notice.lastEventId, other.lastEventId];
  const isNewer = left.length === right.length ? left >= right : left.length > right.length;
  const newest = isNewer ? notice : other;
  return notice.ended === true || other.ended === true ? { ...newest, ended: true } : newest;
}

function joinCommands(notices: readonly Notice[]): Notice[] {
  const commandIds = notices.flatMap((notice) => (notice.kind === "commands" ? notice.commandIds : []));
  const others = notices.filter((notice) => notice.kind !== "commands");
  const joined: Notice[] = [];
  for (let from = 0; from < commandIds.length; from += NOTICE_COMMANDS_MAX) {
    joined.push({ kind: "commands", commandIds: commandIds.slice(from, from + NOTICE_COMMANDS_MAX) });
  }
  return [...joined, ...others];
}
