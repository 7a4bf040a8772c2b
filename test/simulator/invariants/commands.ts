import assert from "node:assert/strict";
import { type EventRecord, fromRecord } from "../../../src/schema/rules/event-record.ts";
import { type TaskError, WORKER_LOST } from "../../../src/schema/words/outcome.ts";
import { commandFromLog } from "../../../src/services/executions/recall-command.ts";
import { isHeld, type MemoryStore } from "../../support/engine/memory-store.ts";
import { programOf } from "../playbooks.ts";
import type { Simulation } from "../simulate.ts";

/** What the log says of a command. */
export interface CommandStory {
  commandId: string;
  executionId: string;
  /** In their order, its issue first. */
  events: EventRecord[];
  /** Number of claims, without those that ended as the command was parked. */
  claims: number;
  /** How often it was parked. */
  parks: number;
}

/** Every command that was issued. */
export function commandStories({ events }: Pick<MemoryStore, "events">): CommandStory[] {
  const stories = new Map<string, CommandStory>();
  for (const [executionId, log] of events) {
    for (const record of log) {
      const commandId = record["command_id"];
      if (typeof commandId !== "string") continue;
      const story = stories.get(commandId) ?? { commandId, executionId, events: [], claims: 0, parks: 0 };
      stories.set(commandId, story);
      story.events.push(record);
      if (record.event_type === "command.claimed") story.claims += 1;
      if (record.event_type !== "command.parked") continue;
      story.claims -= 1;
      story.parks += 1;
    }
  }
  return [...stories.values()];
}

/**
 * 7: no command is open. A row is left only where a worker may still have to be told: of a command that was claimed more than once,
 * cancelled in a worker's hands, or lost for the last time; and it is as the log has it.
 */
export function nothingIsOpen({ tables: { store } }: Simulation): void {
  const stories = commandStories(store);
  for (const { commandId, events, claims, parks } of stories) {
    const row = store.commands.get(commandId);
    const last = events.at(-1);
    const ends = events.filter(({ event_type }) => /^command\.(completed|failed|cancelled)$/.test(event_type));
    assert.deepEqual(ends, [last], `Command ${commandId} does not end once, at its end`);
    // Beyond the claims of its workers, so that one that comes back learns that it lost the command.
    const beyond = isWorkerLost(last) ? 1 : 0;
    const isToBeTold = last?.event_type === "command.cancelled" ? claims > 0 : claims + beyond > 1;
    // One that was parked may leave a row, where a worker ended it; and none, where one had lost it before: that learns it with its report.
    if (parks === 0)
      assert.equal(row !== undefined, isToBeTold, `${commandId}, ${last?.event_type} after ${claims} claims`);
    if (row === undefined) continue;
    assert.ok(row.status !== "PENDING" && !isHeld(row), `Command ${commandId} is ${row.status} after the end`);
    assert.equal(last?.event_type, `command.${row.status.toLowerCase()}`, `Command ${commandId} is ${row.status}`);
    assert.equal(row.attempt, claims + parks + beyond, `Command ${commandId} was claimed ${claims} times`);
  }
  assert.deepEqual([...store.waits.keys()], [], "Something waits after the end");
  const known = new Set(stories.map(({ commandId }) => commandId));
  for (const id of store.commands.keys()) assert.ok(known.has(id), `No log names command ${id}`);
}

/** What every command was given follows from the log, letter for letter. */
export async function commandsAreInTheLog({ tables: { store } }: Simulation): Promise<void> {
  const programs = async (catalogId: string) => programOf(catalogId);
  for (const { commandId, executionId, events } of commandStories(store)) {
    const issued = events[0];
    const given = store.issuedBodies.get(commandId);
    assert.ok(issued !== undefined && fromRecord(issued).type === "command.issued", `Command ${commandId}`);
    if (given === undefined) continue;
    const made = await commandFromLog({ store, programs }, { executionId, commandId, issuedId: issued.event_id });
    assert.equal(JSON.stringify(made), given, `Command ${commandId} is made again from the log`);
  }
}

/** The end of a command that was lost too often. */
export function isWorkerLost(record: EventRecord | undefined): boolean {
  // A sub-playbook's failure passes its code on; its worker reports that.
  if (record?.event_type !== "command.failed" || record["worker"] !== undefined) return false;
  return (record["error"] as TaskError).code === WORKER_LOST;
}
