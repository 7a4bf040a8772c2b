import type { Notice } from "../schema/words/notice.ts";

/**
 * Carries notices between the servers of one database. It is a hint: a notice may be lost or doubled, and may come late or in
 * another order. Losing all of them costs time, never work; whoever waits for one also looks at the database now and then.
 *
 * What holds: subscribers of the same process hear every notice, each once, whatever became of the network. Other processes
 * hear it while the broker can be reached.
 */
export interface Broker {
  /**
   * Tells everyone. Call it after the commit of what it tells of. Returns at once and never throws: handlers run later, and
   * while the broker cannot be reached a bounded number of notices waits for it, the oldest being dropped.
   */
  publish(notice: Notice): void;
  /** Hears every notice until the returned function is called. A handler that throws is logged and called again. */
  subscribe(handler: (notice: Notice) => void): () => void;
  /** Whether other processes hear what is published now. */
  connected(): boolean;
  /** Sends what waits, for a second at most, and stops. Nothing is heard afterwards. May be called more than once. */
  close(): Promise<void>;
}
