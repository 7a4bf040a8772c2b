/** Commands that this process has told of and not yet heard back. Beyond this the oldest are forgotten, and looked up. */
const KEPT_MAX = 20_000;

/** Tells notices of this process, which every broker brings back, from those of others. */
export interface Echoes {
  /** These are about to be published. */
  told(commandIds: readonly string[]): void;
  /** Of what was heard, what somebody else told: or this process a second time, as its reaper does. */
  fromOthers(commandIds: readonly string[]): string[];
}

/**
 * Commands that a round has issued are in this process's queue already. Without this each commit would be followed by a
 * statement that looks up what it has just written.
 */
export function createEchoes(): Echoes {
  const own = new Set<string>();
  return {
    told(commandIds) {
      for (const id of commandIds) own.add(id);
      for (const id of own) {
        if (own.size <= KEPT_MAX) return;
        own.delete(id);
      }
    },
    fromOthers: (commandIds) => commandIds.filter((id) => !own.delete(id)),
  };
}
