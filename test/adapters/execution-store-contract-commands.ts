import assert from "node:assert/strict";
import type { Requirement } from "../../src/ports/execution-store.ts";
import { keyOf } from "../../src/services/orchestration/rounds/ready-queue.ts";
import { CLAIMED } from "../support/database/store-rows.ts";
import type { Check } from "./execution-store-bench.ts";

/** Commands: issued, claimed, ended, listed. */
export function exerciseCommands(check: Check): void {
  const free = { worker: null, claimedAt: null, leaseExpiresAt: null };

  check("a command goes from waiting to claimed, running and done, and stays done", async (bench) => {
    const { rows, write, commandRow } = bench;
    const { change, commandId } = await bench.issued();
    assert.deepEqual(await commandRow(commandId), { status: "PENDING", attempt: 0, ...free });
    const claimed = rows.follow(change, { commands: [{ commandId, ...CLAIMED }] });
    const { at } = await write(claimed);
    const held = { attempt: 1, worker: "w1", claimedAt: at, leaseExpiresAt: at + 120_000 };
    assert.deepEqual(await commandRow(commandId), { status: "CLAIMED", ...held });
    const running = { commandId, status: "RUNNING", attempt: 1, worker: "w1", leaseMs: null } as const;
    const started = rows.follow(claimed, { commands: [running] });
    await write(started);
    assert.deepEqual(await commandRow(commandId), { status: "RUNNING", ...held }, "a start is no claim");
    const completed = { commandId, status: "COMPLETED", attempt: 1, worker: null, leaseMs: null } as const;
    const done = rows.follow(started, { commands: [completed] });
    await write(done);
    assert.deepEqual(await commandRow(commandId), { status: "COMPLETED", attempt: 1, ...free });
    await write(rows.follow(done, { commands: [{ commandId, ...CLAIMED, attempt: 2 }] }));
    assert.deepEqual(await commandRow(commandId), { status: "COMPLETED", attempt: 1, ...free }, "what ended stays");
  });

  check(
    "of a command that has ended and goes nothing is left, and nothing follows; another claim finds no row",
    async (bench) => {
      const { store, rows, write, commandRow } = bench;
      const { change, commandId } = await bench.issued(CLAIMED);
      const done = rows.follow(change, { ended: [commandId] });
      await write(done);
      assert.equal(await commandRow(commandId), undefined);
      assert.deepEqual([...(await store.commandBodies([commandId]))], []);
      assert.equal((await store.executionsOf([commandId])).size, 0);
      assert.deepEqual([...(await store.claimableCommands([commandId]))], []);
      await write(rows.follow(done, { commands: [{ commandId, ...CLAIMED, attempt: 2 }], ended: [commandId] }));
      assert.equal(await commandRow(commandId), undefined);
    },
  );

  check("a row goes with its own execution's change alone, and only where that is written", async (bench) => {
    const { rows, write, begun, issued, commandRow } = bench;
    const mine = await begun();
    const { change, commandId } = await issued(CLAIMED);
    await write(rows.follow(mine, { ended: [commandId] }));
    assert.equal((await commandRow(commandId))?.status, "CLAIMED", "another execution's change");
    await write(rows.follow(change));
    assert.equal((await write(rows.follow(change, { ended: [commandId] }))).moved.size, 0);
    assert.equal((await commandRow(commandId))?.status, "CLAIMED", "a change that was decided on an older event");
  });

  check("a row that was left as ended stays", async ({ rows, write, issued, commandRow }) => {
    const { change, commandId } = await issued(CLAIMED);
    const completed = { commandId, status: "COMPLETED", attempt: 1, worker: null, leaseMs: null } as const;
    const done = rows.follow(change, { commands: [completed] });
    await write(done);
    await write(rows.follow(done, { ended: [commandId] }));
    assert.deepEqual(await commandRow(commandId), { status: "COMPLETED", attempt: 1, ...free });
  });

  check("a command may be issued as claimed", async ({ rows, write, commandRow }) => {
    const change = rows.begin();
    const command = rows.issue(change, CLAIMED);
    const { at } = await write({ ...change, issued: [command] });
    const held = { attempt: 1, worker: "w1", claimedAt: at, leaseExpiresAt: at + 120_000 };
    assert.deepEqual(await commandRow(command.commandId), { status: "CLAIMED", ...held });
  });

  check("a further claim has a lease of its own, and its number is kept by a cancellation", async (bench) => {
    const { rows, write } = bench;
    const { change, commandId } = await bench.issued(CLAIMED);
    const again = rows.follow(change, {
      commands: [{ commandId, ...CLAIMED, attempt: 2, worker: "w2", leaseMs: 5_000 }],
    });
    const { at } = await write(again);
    const held = { attempt: 2, worker: "w2", claimedAt: at, leaseExpiresAt: at + 5_000 };
    assert.deepEqual(await bench.commandRow(commandId), { status: "CLAIMED", ...held });
    const cancelled = { commandId, status: "CANCELLED", attempt: 0, worker: null, leaseMs: null } as const;
    await write(rows.follow(again, { commands: [cancelled] }));
    assert.deepEqual(await bench.commandRow(commandId), { status: "CANCELLED", attempt: 2, ...free });
  });

  check("a command of another execution is not changed", async ({ rows, write, begun, issued, commandRow }) => {
    const mine = await begun();
    const { commandId } = await issued();
    await write(rows.follow(mine, { commands: [{ commandId, ...CLAIMED }] }));
    assert.equal((await commandRow(commandId))?.status, "PENDING");
  });

  check("commands that wait are read by what they require, of each the oldest first", async (bench) => {
    const { store, rows, write, issued } = bench;
    const first = await issued({ labels: { gpu: "yes", zone: "a" } });
    await issued(CLAIMED);
    await issued({ ...CLAIMED, kinds: ["held"] });
    const change = rows.begin();
    const [second, third] = [rows.issue(change), rows.issue(change)];
    await write({ ...change, issued: [third, second] });
    const plain = { kinds: ["noop", "http"], labels: null };
    const gpu = { kinds: ["noop", "http"], labels: { zone: "a", gpu: "yes" } };
    const ready = { ...plain, attempt: 0 };
    const [of, listed] = [first.change.executionId, await store.pendingCommands([{ requirement: gpu, limit: 2 }])];
    assert.deepEqual([...listed], [{ ...ready, ...gpu, commandId: first.commandId, executionId: of }]);
    const both = await store.pendingCommands([
      { requirement: plain, limit: 1 },
      { requirement: gpu, limit: 1 },
      { requirement: { kinds: ["held"], labels: null }, limit: 1 },
      { requirement: { kinds: [], labels: {} }, limit: 1 },
    ]);
    assert.deepEqual(
      both.map(({ commandId }) => commandId),
      [first.commandId, second.commandId],
    );
    const all = await store.pendingCommands([{ requirement: plain, limit: 3 }]);
    assert.deepEqual(
      all.map(({ commandId }) => commandId),
      [second.commandId, third.commandId],
    );
    const later = await store.pendingCommands([
      { requirement: plain, after: second.commandId, limit: 3 },
      { requirement: plain, after: "0", limit: 3 },
      { requirement: gpu, after: first.commandId, limit: 3 },
    ]);
    assert.deepEqual(
      later.map(({ commandId }) => commandId),
      [second.commandId, third.commandId],
    );
    assert.deepEqual([...(await store.pendingCommands([]))], []);
  });

  check("requirements of commands that wait are told once each, and page by page", async ({ store, rows, write }) => {
    const change = rows.begin();
    const REQUIREMENTS = [
      { kinds: ["once"], labels: null },
      { kinds: ["once"], labels: {} },
      { kinds: ["once"], labels: { zone: "a".repeat(10_000) } },
      { kinds: ["once", "twice"], labels: { zone: "b", gpu: "yes" } },
      { kinds: ["twice", "once"], labels: { zone: "b", gpu: "yes" } },
    ];
    await write({
      ...change,
      issued: [...REQUIREMENTS, ...REQUIREMENTS].map((requirement) => rows.issue(change, requirement)),
    });
    const mine = (requirements: readonly Requirement[]) =>
      requirements
        .filter(({ kinds }) => kinds.includes("once"))
        .map(keyOf)
        .sort();
    assert.deepEqual(mine(await store.pendingRequirements(undefined, 1_000)), REQUIREMENTS.map(keyOf).sort());
    const paged: Requirement[] = [];
    for (let page = await store.pendingRequirements(undefined, 2); page.length > 0; ) {
      paged.push(...page);
      page = await store.pendingRequirements(page.at(-1), 2);
    }
    assert.deepEqual(mine(paged), REQUIREMENTS.map(keyOf).sort());
  });

  check("commands are read back as they were issued, those that are there", async ({ store, rows, write }) => {
    const change = rows.begin();
    const commands = [rows.issue(change), rows.issue(change)];
    await write({ ...change, issued: commands });
    const asked = [...commands.map(({ commandId }) => commandId), "9007199254740991"];
    const bodies = await store.commandBodies(asked);
    assert.equal(JSON.stringify(bodies), JSON.stringify(commands.map(({ body }) => body)));
    assert.deepEqual([...(await store.commandBodies([]))], []);
  });
}

const MINUTE = 60;
const HOUR = 3_600;
/** Who holds a command, for how long, the rest of the lease, and whether it may be taken (Worker protocol), in seconds. */
const CLAIMS: [what: string, worker: string, secondsAgo: number, leaseSeconds: number, free: boolean][] = [
  ["a live lease holds, whoever the worker is", "missing", MINUTE, MINUTE, false],
  ["a live lease holds for a stale worker", "stale", MINUTE, MINUTE, false],
  ["a live lease holds beyond the hard timeout", "healthy", HOUR, MINUTE, false],
  ["a missing worker loses a command with its lease", "missing", MINUTE, -1, true],
  ["a stale worker loses a command with its lease", "stale", MINUTE, -1, true],
  ["a healthy worker keeps a young claim without its lease", "healthy", MINUTE, -1, false],
  ["a healthy worker loses an old claim without its lease", "healthy", HOUR, -1, true],
];

/** Which commands may be claimed. */
export function exerciseClaims(check: Check): void {
  for (const [what, worker, secondsAgo, leaseSeconds, free] of CLAIMS) {
    check(what, async ({ store, issued, ...bench }) => {
      await bench.worker("healthy", 1);
      await bench.worker("stale", HOUR);
      const { change, commandId } = await issued({ ...CLAIMED, worker });
      await bench.claimed(commandId, { secondsAgo, leaseSeconds });
      const ready = { commandId, executionId: change.executionId, kinds: ["noop", "http"], labels: null, attempt: 1 };
      const judge = async (by?: string, isGone = false) =>
        by === undefined
          ? await store.claimableCommands([commandId])
          : await store.claimableCommands([commandId], { worker: by, isGone });
      const lost = [{ ...ready, lostBy: worker }];
      assert.deepEqual([...(await judge())], free ? lost : []);
      assert.deepEqual([...(await judge(worker))], [{ ...ready, lostBy: null }], "given up by its holder");
      assert.deepEqual([...(await judge(worker, true))], lost, "its holder's process is gone");
      assert.deepEqual([...(await judge("another"))], free ? lost : []);
    });
  }

  check("a waiting command may be claimed; one that ended or is not there may not", async (bench) => {
    const { store, rows, write } = bench;
    const [waiting, over] = [await bench.issued(), await bench.issued(CLAIMED)];
    const end = { commandId: over.commandId, status: "COMPLETED", attempt: 1, worker: null, leaseMs: null } as const;
    await write(rows.follow(over.change, { commands: [end] }));
    const ready = await store.claimableCommands(["9007199254740991", over.commandId, waiting.commandId], {
      worker: "w1",
      isGone: true,
    });
    assert.deepEqual(
      ready.map(({ commandId }) => commandId),
      [waiting.commandId],
    );
    assert.deepEqual([...(await store.claimableCommands([]))], []);
  });
}
