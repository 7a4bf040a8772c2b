import { afterEach, beforeEach, type TestContext } from "node:test";

/** What is called for each test of this process, subtests included. */
export interface EachTest {
  onBegin(): void;
  /** The test's hooks and subtests have ended before. */
  onEnd(test: TestContext): Promise<void>;
}

/** False outside of the test runner, where nothing ends what test files share: in screenshots. */
export const isTest = process.env["NODE_TEST_CONTEXT"] !== undefined;
const listeners: EachTest[] = [];

// A suite takes over the hooks that are there when it is made. So this is loaded before the suites of a room's files are made.
if (isTest) {
  beforeEach(() => {
    for (const listener of listeners) listener.onBegin();
  });
  afterEach(async (test) => {
    for (const listener of listeners) await listener.onEnd(test as TestContext);
  });
}

/** Has this called for the tests that begin or end from now on. */
export function onEachTest(listener: EachTest): void {
  listeners.push(listener);
}
