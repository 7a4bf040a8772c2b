/**
 * Published ids that are kept until they come back. Beyond this number the oldest are forgotten; their notices then cause a
 * lookup.
 */
const KEPT_MAX = 20_000;

/** A loopback filter: recognises the notices that this process published, which every broker delivers to it too. */
export interface OwnNotices {
  /** These ids are about to be published. */
  published(commandIds: readonly string[]): void;
  /** Filters out the ids that this process published, once each: a repeat, for example by its reaper, passes. */
  fromOthers(commandIds: readonly string[]): string[];
}

/**
 * Commands issued by a round are already in this process's queue. Without this filter each commit would be followed by a
 * statement that looks up what was just written.
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
