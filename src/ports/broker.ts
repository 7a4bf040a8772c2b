import type { Notice } from "../schema/words/notice.ts";

/**
 * Carries notices between the servers of one database. A notice is only a hint: it may be lost or doubled, and may come late or
 * out of order. Losing all of them costs time, never work: the listeners also poll the database. Guarantees: subscribers of the
 * same process get every notice, each once, whatever happens to the network. Other processes get it while the broker can be
 * reached.
 */
export interface Broker {
  /**
   * Publishes to all servers. Call it after the commit that it announces. Returns at once and never throws: handlers run later,
   * and while the broker cannot be reached a bounded number of notices waits for it; beyond that the oldest are dropped.
   */
  publish(notice: Notice): void;
  /**
   * Receives every notice until the returned function is called. If a handler throws, the error is logged and the handler
   * stays.
   */
  subscribe(handler: (notice: Notice) => void): () => void;
  /** Whether other processes receive what is published now. */
  connected(): boolean;
  /**
   * Sends what is waiting, for a second at most, and stops. Handlers are not called afterwards. May be called more than once.
   */
  close(): Promise<void>;
}
