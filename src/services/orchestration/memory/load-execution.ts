import { openDecisions, type SealedDecisions, sealedDecisions } from "../../../engine/sealing/decision-sealing.ts";
import { evolve } from "../../../engine/state/evolve.ts";
import { type ExecutionState, emptyState } from "../../../engine/state/state.ts";
import { type LoadedReferences, loadedReferences } from "../../../language/template/loaded-references.ts";
import type { ExecutionStore, StoredExecution } from "../../../ports/execution-store.ts";
import { type EventRecord, fromRecord } from "../../../schema/rules/event-record.ts";
import type { FlowEvent, ParentRef } from "../../../schema/words/event.ts";
import type { Json } from "../../../schema/words/json.ts";
import type { Sealer } from "../../../schema/words/sealed.ts";
import type { CommandProgram } from "./program-cache.ts";

/** Version of the state's shape in snapshots. Raise it with every change of `engine/state/state.ts` that old ones do not fit. */
export const SNAPSHOT_FORMAT = 3;
/** Events after which a state is written down, so that loading an execution folds no more than these. */
export const SNAPSHOT_EVENTS = 2_000;
/** Events read at a time when an execution is loaded. */
const PAGE_EVENTS = 1_000;

/** An execution in memory: the fold of its events, and up to which. */
export interface LiveExecution {
  state: ExecutionState;
  source: CommandProgram;
  catalogId: string;
  /** The newest event that is in the state. */
  lastEventId: number;
  /** Events that were accepted and whose consequences are still to be decided, in order. */
  undecided: UndecidedEvent[];
  /** Ids of the events that announced its open commands, by command: what is reported of a command follows from that. */
  issued: Map<string, number>;
  references: LoadedReferences;
  /** What its decisions read and write. */
  decisions: SealedDecisions;
  /** Events since the newest snapshot. */
  eventsSinceSnapshot: number;
}

/** An event in the log, with its id where that is known. */
export interface UndecidedEvent {
  event: FlowEvent;
  eventId: number | undefined;
}

/** Keeps {@link LiveExecution.issued} up to date. */
export function noteIssued(issued: LiveExecution["issued"], event: FlowEvent, eventId: number): void {
  if (event.type === "command.issued") issued.set(event.command_id, eventId);
  const hasEnded =
    event.type === "command.completed" || event.type === "command.failed" || event.type === "command.cancelled";
  if (hasEnded) issued.delete(event.command_id);
}

/** What a snapshot has beside the state. */
interface SnapshotExtra {
  /** Absent in one of an older version. */
  issued?: Record<string, number>;
}

/** A state as a snapshot keeps it. */
export function snapshotText({ state, issued }: Pick<LiveExecution, "state" | "issued">): string {
  const extra: SnapshotExtra = { issued: Object.fromEntries(issued) };
  return JSON.stringify({ ...state, ...extra });
}

/** What loading needs. */
export interface LoadDeps {
  store: Pick<ExecutionStore, "find" | "eventsAfter">;
  programs: (catalogId: string) => Promise<CommandProgram>;
  results: { load(ref: string): Promise<Json> };
  sealerOf?(rootExecutionId: string): Sealer;
}

/** What the decisions of an execution read and write: its sensitive results, opened and sealed. */
export function decisionsOf(
  { results, sealerOf }: Pick<LoadDeps, "results" | "sealerOf">,
  executionId: string,
  parent: () => ParentRef | null | undefined,
): SealedDecisions {
  if (sealerOf === undefined) return openDecisions(results);
  return sealedDecisions(results, () => {
    const caller = parent();
    return sealerOf(caller?.root_execution_id ?? caller?.execution_id ?? executionId);
  });
}

/** Folds an execution from its newest snapshot and the events after it; undefined when there is none. */
export async function loadExecution(deps: LoadDeps, executionId: string): Promise<LiveExecution | undefined> {
  const stored = await deps.store.find(executionId);
  if (stored === undefined) return undefined;
  const source = await deps.programs(stored.catalogId);
  const start = startingPoint(stored);
  const decisions = decisionsOf(deps, executionId, () => live.state.parent);
  const live: LiveExecution = {
    state: start.state,
    source,
    catalogId: stored.catalogId,
    lastEventId: start.eventId,
    undecided: [],
    issued: start.issued,
    references: loadedReferences(decisions.store),
    decisions,
    eventsSinceSnapshot: 0,
  };
  // Only up to what the row says: what another server writes meanwhile is found out when this state is written.
  while (live.lastEventId < stored.lastEventId) {
    const page = await deps.store.eventsAfter(executionId, live.lastEventId, PAGE_EVENTS);
    const known = page.filter((record) => record.event_id <= stored.lastEventId);
    for (const record of known) fold(live, record);
    if (known.length === 0) break;
  }
  live.lastEventId = stored.lastEventId;
  return live;
}

function startingPoint({
  executionId,
  snapshot,
}: StoredExecution): Pick<LiveExecution, "state" | "issued"> & { eventId: number } {
  if (snapshot === null || snapshot.format !== SNAPSHOT_FORMAT) {
    return { state: emptyState(), issued: new Map(), eventId: Number(executionId) };
  }
  const { issued = {}, ...state } = JSON.parse(snapshot.state) as ExecutionState & SnapshotExtra;
  return { state, issued: new Map(Object.entries(issued)), eventId: snapshot.eventId };
}

function fold(live: LiveExecution, record: EventRecord): void {
  if (!isMarker(record)) {
    const event = fromRecord(record);
    evolve(live.state, event);
    noteIssued(live.issued, event, record.event_id);
  }
  live.lastEventId = record.event_id;
  live.eventsSinceSnapshot += 1;
}

/** Markers of batches stand in the log for people: they are no part of the state. */
export function isMarker(record: EventRecord): boolean {
  return record.event_type.startsWith("batch.");
}
