import { type PlacedEvent, recallCommand } from "../../engine/decide/issued-command.ts";
import type { ExecutionStore } from "../../ports/execution-store.ts";
import { type EventRecord, fromRecord } from "../../schema/rules/event-record.ts";
import type { Command } from "../../schema/words/command.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { eventPages, isMarker, startingPointUpTo } from "../orchestration/memory/load-execution.ts";
import type { CommandProgram } from "../orchestration/memory/program-cache.ts";

/** What {@link commandFromLog} needs. */
export interface RecallDeps {
  store: Pick<ExecutionStore, "find" | "eventsAfter" | "snapshotUpTo">;
  programs(catalogId: string): Promise<CommandProgram>;
}

/** A command, and the event that announced it. */
export interface Issue {
  executionId: string;
  commandId: string;
  issuedId: number;
}

/** Most events that are folded for one command: one or two seconds. */
const EVENTS_MAX = 200_000;

/**
 * A command as it was issued, made again from the log by the same engine: commands that have ended have no row. It begins with the
 * last snapshot before the command, else with the first event. Undefined for an execution that is gone. Throws
 * `FlowError` NOT_FOUND beyond `eventsMax` events (default 200,000).
 */
export async function commandFromLog(
  { store, programs }: RecallDeps,
  { executionId, commandId, issuedId }: Issue,
  eventsMax = EVENTS_MAX,
): Promise<Command | undefined> {
  const stored = await store.find(executionId);
  if (stored === undefined) return undefined;
  const { program } = await programs(stored.catalogId);
  const start = await startingPointUpTo(store, stored, issuedId - 1);
  const recall = recallCommand(program, commandId, start.state);
  let read = 0;
  for await (const page of eventPages(store, executionId, start.lastEventId)) {
    for (const record of page) {
      const command = isMarker(record) ? undefined : recall.next(placed(record));
      if (command !== undefined) return command;
    }
    read += page.length;
    const isBefore = (page.at(-1)?.event_id ?? 0) < issuedId;
    if (read >= eventsMax && isBefore) throw tooFar(executionId, commandId, eventsMax);
  }
  return recall.end();
}

function placed(record: EventRecord): PlacedEvent {
  return {
    event: fromRecord(record),
    eventId: record.event_id,
    cause: record["parent_event_id"] as number | undefined,
  };
}

function tooFar(executionId: string, commandId: string, eventsMax: number): FlowError {
  const most = eventsMax.toLocaleString("en");
  const what = `What command ${commandId} of execution ${executionId} was given is not kept after its end`;
  return new FlowError(
    "NOT_FOUND",
    `${what}. It would follow from the log, but more than ${most} events came before it`,
  );
}
