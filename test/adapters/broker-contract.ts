import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Broker } from "../../src/ports/broker.ts";
import { NOTICE_COMMANDS_MAX, type Notice } from "../../src/schema/words/notice.ts";
import { type RecordedLog, recordLog } from "../support/engine/recorded-log.ts";

/** Two servers' ends of one broker, connected; the same one twice where a broker has one process only. */
export interface BrokerPair {
  here: Broker;
  there: Broker;
  /** Log of `there`. */
  log: RecordedLog;
  /** Closes both. */
  close(): Promise<void>;
}

/** What a subscriber heard so far, and a way to wait for more. */
export interface Listener {
  readonly notices: readonly Notice[];
  /** Ids of all commands in them. */
  commandIds(): string[];
  /** Resolves once it has heard such a notice. */
  until(holds: (notice: Notice) => boolean): Promise<void>;
  stop(): void;
}

/** Subscribes. */
export function listen(broker: Broker): Listener {
  const notices: Notice[] = [];
  const waiting = new Set<(notice: Notice) => void>();
  const stop = broker.subscribe((notice) => {
    notices.push(notice);
    for (const tell of waiting) tell(notice);
  });
  return {
    notices,
    stop,
    commandIds: () => notices.flatMap((notice) => (notice.kind === "commands" ? notice.commandIds : [])),
    until: (holds) =>
      new Promise((resolve) => {
        if (notices.some(holds)) resolve();
        waiting.add((notice) => {
          if (holds(notice)) resolve();
        });
      }),
  };
}

/** A notice that a test can wait for. */
export function sign(executionId: string): Notice & { kind: "cancel" } {
  return { kind: "cancel", executionId };
}

/** Whether a notice is that of `sign`. */
export function isSign(executionId: string): (notice: Notice) => boolean {
  return (notice) => notice.kind === "cancel" && notice.executionId === executionId;
}

/** What every broker does. `setup` makes a fresh pair for each test. */
export function exerciseBroker(name: string, setup: (log: RecordedLog) => Promise<Omit<BrokerPair, "log">>): void {
  const check = (what: string, body: (pair: BrokerPair) => Promise<void>): void => {
    test(what, { timeout: 300_000 }, async () => {
      const log = recordLog();
      const pair = { ...(await setup(log)), log };
      try {
        await body(pair);
      } finally {
        await pair.close();
      }
    });
  };

  describe(name, () => {
    check("every kind of notice is heard as it was published", async ({ here, there }) => {
      const published: Notice[] = [
        { kind: "commands", commandIds: ["12", "13"] },
        { kind: "execution", executionId: "9007199254740991", lastEventId: "77" },
        sign("5"),
      ];
      const listener = listen(there);
      for (const notice of published) here.publish(notice);
      for (const notice of published) await listener.until(({ kind }) => kind === notice.kind);
      assert.deepEqual(new Set(listener.notices), new Set(published));
    });

    check("subscribers of the publishing process hear a notice once, after the publisher's turn", async ({ here }) => {
      const listener = listen(here);
      here.publish(sign("1"));
      assert.deepEqual(listener.notices, [], "not within publish: handlers may publish themselves");
      here.publish(sign("2"));
      await listener.until(isSign("2"));
      assert.deepEqual(listener.notices, [sign("1"), sign("2")]);
    });

    check("who unsubscribed hears nothing more, the others do", async ({ here, there }) => {
      const gone = listen(there);
      const listener = listen(there);
      here.publish(sign("1"));
      await gone.until(isSign("1"));
      gone.stop();
      here.publish(sign("2"));
      await listener.until(isSign("2"));
      assert.deepEqual(gone.notices, [sign("1")]);
    });

    check("a handler that throws is logged, and keeps nobody from hearing", async ({ here, there, log }) => {
      let calls = 0;
      there.subscribe(() => {
        calls += 1;
        throw new Error("handler is broken");
      });
      const listener = listen(there);
      here.publish(sign("1"));
      here.publish(sign("2"));
      await listener.until(isSign("2"));
      assert.equal(calls, 2);
      assert.equal(log.matching("a subscriber of the broker failed").length, 2);
    });

    check("the largest notice arrives in full, and so do many at once", async ({ here, there }) => {
      const listener = listen(there);
      const ids = Array.from({ length: NOTICE_COMMANDS_MAX }, (_, index) => String(2 ** 52 + index));
      here.publish({ kind: "commands", commandIds: ids });
      for (let count = 1; count <= 2_000; count += 1) here.publish(sign(String(count)));
      await listener.until(isSign("2000"));
      assert.deepEqual(new Set(listener.commandIds()), new Set(ids));
      assert.equal(listener.notices.filter(({ kind }) => kind === "cancel").length, 2_000);
    });

    check("a closed broker hears nothing, says so, and may be used and closed again", async ({ here, there }) => {
      const listener = listen(here);
      assert.equal(here.connected(), true);
      here.publish(sign("1"));
      await here.close();
      here.publish(sign("2"));
      there.publish(sign("3"));
      await here.close();
      assert.equal(here.connected(), false);
      assert.ok(!listener.notices.some(isSign("2")) && !listener.notices.some(isSign("3")));
    });
  });
}
