import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryStore } from "../../support/engine/memory-store.ts";
import { openOrchestrator } from "../../support/engine/orchestrator.ts";

const wanted = (worker: string) => ({ worker, limit: 10, kinds: undefined, labels: {}, waitMs: 30_000 });
const DOCUMENT = `apiVersion: flow/v2
kind: Playbook
metadata: {name: p, path: p}
workflow:
  - step: start
    tool: {kind: noop}
`;

test("only the draining worker's claim is answered at once", async () => {
  const { orchestrator, start } = openOrchestrator();
  const [draining, other] = [orchestrator.claim(wanted("draining")), orchestrator.claim(wanted("other"))];
  orchestrator.dismiss("draining");
  assert.deepEqual(await draining, []);
  await start(DOCUMENT);
  assert.equal((await other).length, 1);
});

/** A service whose next write waits; `begun` resolves when it is about to be made. */
function setupSlow() {
  const store = createMemoryStore(Date.now);
  const { flush } = store;
  let write = () => {};
  let begin = () => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const advancing = openOrchestrator({}, store);
  const slowDown = () => {
    store.flush = async (changes) => {
      store.flush = flush;
      begin();
      await new Promise<void>((resolve) => {
        write = resolve;
      });
      return await flush(changes);
    };
  };
  return { ...advancing, slowDown, begun, write: () => write() };
}

test("a server that stops while a claim is written gives the command to the claiming worker only", async () => {
  const { orchestrator, start, slowDown, begun, write } = setupSlow();
  await start(DOCUMENT);
  slowDown();
  const [stopping, left] = [new AbortController(), new AbortController()];
  const claimed = orchestrator.claim(wanted("asked"), stopping.signal, left.signal);
  await begun;
  const other = orchestrator.claim(wanted("other"));
  stopping.abort();
  write();
  assert.deepEqual(
    (await claimed).map(({ attempt }) => attempt),
    [1],
  );
  orchestrator.dismiss("other");
  assert.deepEqual(await other, []);
});

test("the claim of a worker that leaves while it is written goes to another worker at once", async () => {
  const { orchestrator, start, slowDown, begun, write } = setupSlow();
  await start(DOCUMENT);
  slowDown();
  const left = new AbortController();
  const claimed = orchestrator.claim(wanted("gone"), left.signal);
  await begun;
  const other = orchestrator.claim(wanted("other"));
  left.abort();
  write();
  await claimed;
  assert.deepEqual(
    (await other).map(({ attempt }) => attempt),
    [2],
  );
});

test("a claim gets no command of a playbook that it does not run, whatever the labels of the command say", async () => {
  const { orchestrator, start } = openOrchestrator();
  const never = orchestrator.claim({ ...wanted("shared"), runsPath: (path) => path !== "p" });
  await start(DOCUMENT);
  assert.equal((await orchestrator.claim({ ...wanted("other"), runsPath: (path) => path === "p" })).length, 1);
  orchestrator.dismiss("shared");
  assert.deepEqual(await never, []);
});

test("a wait for commands with labels ends with one of them, and with no other", async () => {
  const poolOf = (path: string) => (path === "p" ? "own" : undefined);
  const { orchestrator, start } = openOrchestrator({ poolOf });
  const ability = { kinds: undefined, labels: {}, isOfPool: (pool: string | undefined) => pool === "own" };
  const given = new AbortController();
  let told = false;
  const waiting = orchestrator.untilReady(ability, given.signal).then(() => {
    told = true;
  });
  await start(DOCUMENT.replace("path: p", "path: q"));
  assert.equal(told, false);
  await start(DOCUMENT);
  await waiting;
  assert.equal((await orchestrator.claim({ ...wanted("w"), ...ability })).length, 1);
  const ended = orchestrator.untilReady(ability, given.signal);
  given.abort();
  await ended;
});
