/** Published ids that are kept until they come back. Beyond this the oldest are forgotten: their notices are then looked up. */
const KEPT_MAX = 20_000;

/** A loopback filter: recognises the notices that this process published, which every broker delivers to it too. */
export interface OwnNotices {
  /** These are about to be published. */
  published(commandIds: readonly string[]): void;
  /** Filters out the ids that this process published, once each: a repeat, for example by its reaper, passes. */
  fromOthers(commandIds: readonly string[]): string[];
}

/**
 * Commands that a round has issued are in this process's queue already. Without this each commit would be followed by a
 * statement that looks up what it has just written.
 */
export function createOwnNotices(): OwnNotices {
  const own = new Set<string>();
  return {
    published(commandIds) {
      for (const id of commandIds) own.add(id);
      for (const id of own) {
        if (own.size <= KEPT_MAX) return;
        own.delete(id);
      }
    },
    fromOthers: (commandIds) => commandIds.filter((id) => !own.delete(id)),
  };
}
