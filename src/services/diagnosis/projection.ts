import { evolve } from "../../engine/state/evolve.ts";
import { type ExecutionState, emptyState } from "../../engine/state/state.ts";
import { type ProjectedExecution, readLog, sampleExecutions } from "../../repositories/doctor/projection-check.ts";
import type { Reading } from "../../repositories/doctor/read-snapshot.ts";
import { type EventRecord, fromRecord } from "../../schema/rules/event-record.ts";
import { messageOf } from "../../schema/words/errors.ts";
import { isMarker, SNAPSHOT_FORMAT } from "../orchestration/memory/load-execution.ts";
import { type CheckResult, finding, shellWord } from "./finding.ts";

/** How many executions are folded again, and the longest log that is. Together some tenths of a second. */
const SAMPLE = { newest: 20, oldest: 5 };
const EVENTS_MAX = 5_000;

/**
 * Folds the logs of a few executions anew and compares what comes of it with their rows, open commands and snapshots. The log
 * is the truth; whatever differs was changed by hand, or is a fault.
 */
export async function checkProjection(reading: Reading): Promise<CheckResult> {
  const findings: CheckResult["findings"] = [];
  let compared = 0;
  for (const row of await sampleExecutions(reading, SAMPLE)) {
    const log = await readLog(reading, row.executionId, EVENTS_MAX);
    if (log === undefined) continue;
    compared += 1;
    const differences = differencesOf(row, log);
    if (differences.length === 0) continue;
    const { executionId, path } = row;
    findings.push(
      finding({
        check: "projection",
        what: `Execution ${executionId} of ${path} is not what its log says: ${differences.join("; ")}`,
        since: row.updatedAt,
        why: "Lists, waiters and workers go by these rows: it may be shown wrongly, or be stuck.",
        todo: "Keep its events for a report of this fault; start it again where its outcome matters.",
        command: `flow events ${executionId} --json > ${executionId}.json; flow run ${shellWord(path)} --runtime server`,
        executionIds: [executionId],
      }),
    );
  }
  return { findings, counts: { executions_compared: compared } };
}

/** What differs between an execution's rows and the fold of its log, in words; nothing where all is well. */
export function differencesOf(row: ProjectedExecution, log: readonly EventRecord[]): string[] {
  const folded = fold(log, row.snapshot?.eventId);
  if ("fault" in folded) return [`its log cannot be folded (${folded.fault})`];
  const { state, atSnapshot } = folded;
  const found: string[] = [];
  // A pause is a word of the row alone.
  if (state.status !== row.status) {
    found.push(`its row says ${row.status}, its log ${state.status}`);
  }
  if ((state.error !== null) !== row.hasError) {
    found.push(row.hasError ? "its row has an error that the log has not" : "its row lacks the error that the log has");
  }
  const newest = log.findLast((record) => !isMarker(record))?.event_id ?? 0;
  if (newest > row.lastEventId) found.push(`its row does not know of the events after ${row.lastEventId}`);
  const open = Object.keys(state.commands).toSorted((left, right) => Number(left) - Number(right));
  if (open.join() !== row.openCommands.join()) {
    found.push(`open commands are ${listed(row.openCommands)} by their rows, ${listed(open)} by its log`);
  }
  if (atSnapshot !== undefined && row.snapshot?.format === SNAPSHOT_FORMAT && !isSame(atSnapshot, row.snapshot.state)) {
    found.push(`its snapshot at event ${row.snapshot.eventId} is not the fold of its log`);
  }
  return found;
}

type Folded = { state: ExecutionState; atSnapshot: string | undefined } | { fault: string };

/** The state after the log, and as JSON what it was after the event of the snapshot. */
function fold(log: readonly EventRecord[], snapshotAt: number | undefined): Folded {
  const state = emptyState();
  let atSnapshot: string | undefined;
  try {
    for (const record of log) {
      if (snapshotAt !== undefined && atSnapshot === undefined && record.event_id > snapshotAt) {
        atSnapshot = JSON.stringify(state);
      }
      if (!isMarker(record)) evolve(state, fromRecord(record));
    }
  } catch (error) {
    return { fault: messageOf(error) };
  }
  if (snapshotAt !== undefined) atSnapshot ??= JSON.stringify(state);
  return { state, atSnapshot };
}

/** Equal as JSON, whatever the order of keys. */
function isSame(left: string, right: string): boolean {
  try {
    return left === right || JSON.stringify(sorted(JSON.parse(left))) === JSON.stringify(sorted(JSON.parse(right)));
  } catch {
    return false;
  }
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}

function listed(ids: readonly string[]): string {
  if (ids.length === 0) return "none";
  return ids.length > 3 ? `${ids.slice(0, 3).join(", ")} and ${ids.length - 3} more` : ids.join(", ");
}
