import assert from "node:assert/strict";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import type { TaskError } from "../../../src/schema/words/outcome.ts";
import type { Simulation } from "../simulate.ts";
import { commandStories, isWorkerLost } from "./commands.ts";

/** A command fails with WORKER_LOST at the limit of lost claims, neither before nor after; the log names who lost it. */
export function lossesAreCounted({ tables: { store }, lostClaims }: Simulation): void {
  for (const { commandId, events } of commandStories(store)) {
    const lost: unknown[] = [];
    let holder: unknown;
    for (const record of events) {
      if (record.event_type !== "command.claimed") continue;
      const lostBy = (record["meta"] as JsonObject | undefined)?.["lost_by"];
      assert.ok(lostBy === undefined || lostBy === holder, `${commandId} was lost by ${lostBy}, and ${holder} had it`);
      if (lostBy !== undefined) lost.push(lostBy);
      holder = record["worker"];
    }
    assert.ok(lost.length < lostClaims, `Command ${commandId} was claimed after ${lost.length} lost claims`);
    const end = events.at(-1);
    if (end === undefined || !isWorkerLost(end)) continue;
    assert.equal(lost.length + 1, lostClaims, `Command ${commandId} failed after ${lost.length + 1} lost claims`);
    assert.deepEqual((end["error"] as TaskError).details, { workers: [...lost, holder] });
  }
}

/** Root executions with a command that failed because workers lost it: they end otherwise than locally. */
export function rootsWithLoss({ tables: { store } }: Simulation): ReadonlySet<string> {
  const roots = [...store.events].flatMap(([executionId, log]) =>
    log.some(isWorkerLost) ? [store.executions.get(executionId)?.rootExecutionId ?? ""] : [],
  );
  return new Set(roots);
}
