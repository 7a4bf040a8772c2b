import { noteMark, type StepMark, type StepMarks } from "../../../engine/rerun/step-marks.ts";
import { openDecisions, type SealedDecisions, sealedDecisions } from "../../../engine/sealing/decision-sealing.ts";
import { evolve } from "../../../engine/state/evolve.ts";
import { type ExecutionState, emptyState, openCommand } from "../../../engine/state/state.ts";
import { type LoadedReferences, loadedReferences } from "../../../language/template/loaded-references.ts";
import { addDuration, addHistogram, type Histogram } from "../../../platform/telemetry/histogram.ts";
import type { AttachedPayload, EndTally, ExecutionStore, StoredExecution } from "../../../ports/execution-store.ts";
import { type EventRecord, fromRecord, isMarkerType } from "../../../schema/rules/event-record.ts";
import type { FlowEvent } from "../../../schema/words/event.ts";
import type { Json } from "../../../schema/words/json.ts";
import type { Sealer } from "../../../schema/words/sealed.ts";
import type { CommandProgram } from "./program-cache.ts";

/**
 * Version of the state's shape in snapshots. Raise it with every change of `engine/state/state.ts` that old snapshots do not
 * fit.
 */
export const SNAPSHOT_FORMAT = 3;
/** Number of events after which a snapshot is written, so that loading an execution folds no more than these. */
export const SNAPSHOT_EVENTS = 2_000;
/** Events read at a time when an execution is loaded. */
const PAGE_EVENTS = 1_000;

/** The fold of an execution's events, and the last event folded. */
export interface FoldedExecution {
  state: ExecutionState;
  catalogId: string;
  /** Whose code it runs, and in whose name: {@link trustDomain}. */
  trustDomain: string;
  /** The newest event folded into the state. */
  lastEventId: number;
  /**
   * Ids of the events that announced its open commands, by command: they are the causes of the events reported about a command.
   */
  issued: Map<string, number>;
  /** Where its steps began and ended in the log; null where the fold began with a snapshot of a version that did not keep that. */
  marks: StepMarks | null;
  /** What its steps came to, for statistics. */
  tally: Tally;
  /** Events since the newest snapshot. */
  eventsSinceSnapshot: number;
}

/** An execution as it was after an event. */
export interface PastExecution extends FoldedExecution {
  /** When the event happened, RFC 3339. */
  at: string;
}

/** An execution in memory, with everything needed to advance it. */
export interface LiveExecution extends FoldedExecution {
  source: CommandProgram;
  /** Accepted events whose consequences are still to be decided, in order. */
  undecided: UndecidedEvent[];
  references: LoadedReferences;
  /** What its decisions read and write. */
  decisions: SealedDecisions;
  /** Large results of the round under way, by their references: they are in no store before its commit. */
  attached: Map<string, AttachedPayload>;
  /** Open commands that were parked and of which no claim was lost; undefined until it is asked for. */
  claimedOnce?: Set<string>;
}

/** {@link LiveExecution.claimedOnce}, by the state. */
export function claimedOnce({ commands }: ExecutionState): Set<string> {
  const all = Object.entries(commands);
  return new Set(all.flatMap(([id, { attempt, parks = 0 }]) => (parks > 0 && attempt - parks <= 1 ? [id] : [])));
}

/**
 * The trust domain of an execution: the code of one playbook, in the name of one user or of the operators. Workers keep the code
 * of two domains apart.
 */
export function trustDomain(path: string, startedBy: number | string | null): string {
  return `${path} ${startedBy === null ? "operators" : `user ${startedBy}`}`;
}

/** An event in the log, with its id if that is known. */
export interface UndecidedEvent {
  event: FlowEvent;
  eventId: number | undefined;
}

/** Keeps up to date what is kept beside the state, which already contains the event. */
export function noteEvent({ issued, marks, tally, state }: FoldedExecution, event: FlowEvent, eventId: number): void {
  noteIssued(issued, event, eventId);
  noteMark(marks, event, eventId);
  noteTally(tally, state, event);
}

/** Keeps {@link LiveExecution.issued} up to date. */
export function noteIssued(issued: LiveExecution["issued"], event: FlowEvent, eventId: number): void {
  if (event.type === "command.issued") issued.set(event.command_id, eventId);
  const hasEnded =
    event.type === "command.completed" || event.type === "command.failed" || event.type === "command.cancelled";
  if (hasEnded) issued.delete(event.command_id);
}

/** What a step of an execution came to so far, for statistics. What another execution ran is not among it. */
export interface StepTally {
  /** Runs that ended, those that were cancelled left out. */
  runs: number;
  failed: number;
  /** How long they took. */
  took: Histogram;
  /** How long their commands waited until a worker took them. */
  waited: Histogram;
}

/** By step. It is kept beside the state: nothing is decided by it. */
export type Tally = Map<string, StepTally>;

/**
 * Notes an event of the log, which the state already contains. Called with all of them in their order. From a snapshot of a version that
 * kept no tally it knows what came since.
 */
function noteTally(tally: Tally, state: ExecutionState, event: FlowEvent): void {
  if (event.type !== "command.claimed" && event.type !== "step.completed" && event.type !== "step.failed") return;
  let step = tally.get(event.step);
  if (step === undefined) {
    step = { runs: 0, failed: 0, took: {}, waited: {} };
    tally.set(event.step, step);
  }
  if (event.type === "command.claimed") {
    // What was claimed again had waited before.
    const command = event.attempt === 1 ? openCommand(state, event.command_id) : undefined;
    if (command !== undefined) addDuration(step.waited, event.at - command.issuedAt);
    return;
  }
  const isFailed = event.type === "step.failed";
  if (event.kept !== undefined || (isFailed && event.error.kind === "cancelled")) return;
  step.runs += 1;
  if (isFailed) step.failed += 1;
  addDuration(step.took, event.duration_ms);
}

/** Steps of one execution that are counted one by one: of a playbook with more the first ones that ran. */
const STEPS_MAX = 500;

/** The tally at the end. Steps of which `hasWork` is false wait for no worker: they do nothing that one has to do. */
export function endTally(tally: Tally, state: ExecutionState, hasWork: (step: string) => boolean): EndTally {
  const waited: Histogram = {};
  for (const [name, step] of tally) if (hasWork(name)) addHistogram(waited, step.waited);
  const ran = [...tally].filter(([, { runs }]) => runs > 0).slice(0, STEPS_MAX);
  return {
    durationMs: Math.max(0, (state.endedAt ?? state.startedAt) - state.startedAt),
    waited,
    steps: ran.map(([name, { runs, failed, took }]) => [name, runs, failed, took]),
  };
}

/** The data in a snapshot beside the state. */
interface SnapshotExtra {
  /** Absent in snapshots of older versions. */
  issued?: Record<string, number>;
  marks?: Record<string, StepMark>;
  tally?: Record<string, StepTally>;
}

/** The text of a snapshot. */
export function snapshotText(live: Pick<LiveExecution, "state" | "issued" | "marks" | "tally">): string {
  const { state, issued, marks, tally } = live;
  const extra: SnapshotExtra = {
    issued: Object.fromEntries(issued),
    ...(marks !== null && { marks: Object.fromEntries(marks) }),
    tally: Object.fromEntries(tally),
  };
  return JSON.stringify({ ...state, ...extra });
}

/** Large results, as decisions read them. */
export interface OrchestratorResults {
  load(ref: string): Promise<Json>;
  /** The value of a payload that is not written yet; absent where no report brings any. Throws as `load` does. */
  attachedValue?(payload: AttachedPayload): Promise<Json>;
}

/** What {@link loadExecution} needs. */
export interface LoadDeps {
  store: Pick<ExecutionStore, "find" | "eventsAfter">;
  programs: (catalogId: string) => Promise<CommandProgram>;
  results: OrchestratorResults;
  /**
   * Throws `FlowError` REFERENCE_NOT_AVAILABLE where an execution has no right to a result. Workers report references, and a worker of one
   * team may report another's. Undefined: it may read all.
   */
  checkReading?: ((executionId: string, ref: string) => Promise<void>) | undefined;
  sealerOf?(rootExecutionId: string): Sealer;
}

/** What the decisions of an execution read and write: its sensitive results, opened and sealed. */
export function decisionsOf(
  { results: all, checkReading, sealerOf }: Pick<LoadDeps, "results" | "checkReading" | "sealerOf">,
  executionId: string,
  whose: () => Partial<Pick<ExecutionState, "parent" | "sealedUnder">>,
  attached: LiveExecution["attached"],
): SealedDecisions {
  const results = {
    async load(ref: string) {
      const payload = attached.get(ref);
      if (payload !== undefined && all.attachedValue !== undefined) return await all.attachedValue(payload);
      await checkReading?.(executionId, ref);
      return await all.load(ref);
    },
  };
  if (sealerOf === undefined) return openDecisions(results);
  return sealedDecisions(results, () => sealerOf(sealingRoot({ executionId, ...whose() })));
}

/** The execution under whose key secrets of an execution are sealed: that of a rerun is its original's, else the root of the tree. */
export function sealingRoot({
  executionId,
  parent,
  sealedUnder,
}: Pick<ExecutionState, "executionId"> & Partial<Pick<ExecutionState, "parent" | "sealedUnder">>): string {
  return sealedUnder ?? parent?.root_execution_id ?? parent?.execution_id ?? executionId;
}

/** Loads an execution to advance it; undefined if it does not exist. */
export async function loadExecution(deps: LoadDeps, executionId: string): Promise<LiveExecution | undefined> {
  const folded = await foldStored(deps.store, executionId);
  if (folded === undefined) return undefined;
  const source = await deps.programs(folded.catalogId);
  const attached = new Map<string, AttachedPayload>();
  const decisions = decisionsOf(deps, executionId, () => folded.state, attached);
  return { ...folded, source, undecided: [], references: loadedReferences(decisions.store), decisions, attached };
}

/** Folds an execution from its newest snapshot and the events after it; undefined if it does not exist. */
export async function foldStored(
  store: Pick<ExecutionStore, "find" | "eventsAfter">,
  executionId: string,
): Promise<FoldedExecution | undefined> {
  const stored = await store.find(executionId);
  return stored && (await foldRow(store, stored));
}

/** Folds the execution of a row that was just read, from its newest snapshot or from the state that is given. */
export async function foldRow(
  store: Pick<ExecutionStore, "eventsAfter">,
  stored: StoredExecution,
  start = startingPoint(stored),
): Promise<FoldedExecution> {
  const folded = foldedFrom(stored, start);
  // Only up to the event that the row names: events that another server writes meanwhile are discovered when this state is
  // written.
  await foldUpTo(store, stored.executionId, folded, stored.lastEventId);
  return folded;
}

/**
 * An execution as it was after one of its events: the fold from the last snapshot before it, read from the database alone. What is in
 * memory to be advanced is neither read nor changed. Undefined if the execution does not exist, or the event is not one of its own.
 */
export async function stateAt(
  store: Pick<ExecutionStore, "find" | "eventsAfter" | "snapshotUpTo">,
  executionId: string,
  eventId: number,
): Promise<PastExecution | undefined> {
  const stored = await store.find(executionId);
  const [event] = stored === undefined ? [] : await store.eventsAfter(executionId, eventId - 1, 1);
  if (stored === undefined || event?.event_id !== eventId) return undefined;
  const folded = foldedFrom(stored, await startingPointUpTo(store, stored, eventId));
  await foldUpTo(store, executionId, folded, eventId);
  return { ...folded, at: event.created_at };
}

/** Where to begin to fold an execution up to one of its events: the last snapshot before it that this version can read, else its beginning. */
export async function startingPointUpTo(
  store: Pick<ExecutionStore, "snapshotUpTo">,
  stored: StoredExecution,
  eventId: number,
): Promise<StartingPoint> {
  if (stored.snapshot === null || stored.snapshot.eventId <= eventId) return startingPoint(stored);
  const snapshot = await store.snapshotUpTo(stored.executionId, eventId, SNAPSHOT_FORMAT);
  return startingPoint({ ...stored, snapshot });
}

function foldedFrom(stored: StoredExecution, start: StartingPoint): FoldedExecution {
  const { catalogId, path, startedBy } = stored;
  return { catalogId, trustDomain: trustDomain(path, startedBy), eventsSinceSnapshot: 0, ...start };
}

/** Folds the events after those in the state, up to the event `last`, which must be in the log. */
export async function foldUpTo(
  store: Pick<ExecutionStore, "eventsAfter">,
  executionId: string,
  folded: FoldedExecution,
  last: number,
): Promise<void> {
  for await (const page of eventPages(store, executionId, folded.lastEventId, last)) {
    for (const record of page) fold(folded, record);
  }
  folded.lastEventId = Math.max(folded.lastEventId, last);
}

/** The events of an execution after `after` and up to `last` (default: all), a page at a time; other calls have their turn in between. */
export async function* eventPages(
  store: Pick<ExecutionStore, "eventsAfter">,
  executionId: string,
  after: number,
  last = Number.POSITIVE_INFINITY,
): AsyncGenerator<EventRecord[]> {
  for (let from = after; from < last; ) {
    const page = await store.eventsAfter(executionId, from, PAGE_EVENTS);
    const known = page.filter((record) => record.event_id <= last);
    const end = known.at(-1);
    if (end === undefined) return;
    yield known;
    from = end.event_id;
  }
}

/** A state to fold on from. */
export type StartingPoint = Pick<FoldedExecution, "state" | "issued" | "marks" | "tally" | "lastEventId">;

/** The newest snapshot of an execution, if there is one that this version can read; else its beginning. */
function startingPoint({ executionId, snapshot }: StoredExecution): StartingPoint {
  if (snapshot === null || snapshot.format !== SNAPSHOT_FORMAT) {
    return beginning(executionId);
  }
  const { issued = {}, marks, tally = {}, ...state } = JSON.parse(snapshot.state) as ExecutionState & SnapshotExtra;
  const known = marks === undefined ? null : new Map(Object.entries(marks));
  return {
    state,
    issued: new Map(Object.entries(issued)),
    marks: known,
    tally: new Map(Object.entries(tally)),
    lastEventId: snapshot.eventId,
  };
}

/** An execution before its first event. */
export function beginning(executionId: string): StartingPoint & { marks: StepMarks } {
  return {
    state: emptyState(),
    issued: new Map(),
    marks: new Map(),
    tally: new Map(),
    lastEventId: Number(executionId),
  };
}

function fold(folded: FoldedExecution, record: EventRecord): void {
  if (!isMarker(record)) {
    const event = fromRecord(record);
    evolve(folded.state, event);
    noteEvent(folded, event, record.event_id);
  }
  folded.lastEventId = record.event_id;
  folded.eventsSinceSnapshot += 1;
}

/** Markers of batches are in the log for people: they are not part of the state. */
export function isMarker(record: EventRecord): boolean {
  return isMarkerType(record.event_type);
}
