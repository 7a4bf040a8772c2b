import type { StepStatus } from "../../engine/state/state.ts";
import type { ExecutionStore } from "../../ports/execution-store.ts";
import type { Database } from "../../repositories/database/database.ts";
import type { Visible } from "../../repositories/database/page.ts";
import { changedSteps } from "../../repositories/executions/changed-steps.ts";
import { type EventListQuery, type EventPage, listEvents } from "../../repositories/executions/event-list.ts";
import { type EventMarks, type EventMarksQuery, markEvents } from "../../repositories/executions/event-marks.ts";
import { deleteExecution } from "../../repositories/executions/execution-delete.ts";
import {
  countExecutions,
  findExecution,
  findShownExecution,
  type ListedRow,
  listExecutions,
  listOpenChildren,
  type ShownRow,
} from "../../repositories/executions/execution-list.ts";
import { findStartByKey } from "../../repositories/orchestration/load-execution.ts";
import type { ExecutionStateAnswer } from "../../schema/api/executions.ts";
import type { RenderedAnswer } from "../../schema/api/rendered.ts";
import type { EventRecord } from "../../schema/rules/event-record.ts";
import type { ExecutionFilter } from "../../schema/rules/execution-filter.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Access } from "../access/access.ts";
import type { Audit } from "../access/audit.ts";
import type { Listed, PageQuery } from "../catalog/catalog.ts";
import { unknownExecution } from "../errors.ts";
import type { CommandProgram } from "../orchestration/memory/program-cache.ts";
import type { Orchestrator } from "../orchestration/orchestrator.ts";
import { encodeCursor, idCursor } from "../pagination-cursor.ts";
import type { Results } from "../results/results.ts";
import { awaitResult, type ExecutionResult, type ResultRequest } from "./await-result.ts";
import { type Cancelled, type CancelRequest, cancelExecutions } from "./cancel-execution.ts";
import { type FollowRequest, followEvents } from "./event-stream.ts";
import { type DerivedDetail, detailOf, mayHaveChildren, pastStateOf } from "./execution-detail.ts";
import type { ExecutionReader } from "./execution-reader.ts";
import { type Lineage, type LineageRequest, lineageOf } from "./lineage.ts";
import { type OverrideRequest, overrideSteps } from "./override-step.ts";
import { createPausing, type Pausing } from "./pause-execution.ts";
import { type RenderedRequest, renderedValues } from "./rendered/rendered.ts";
import { type Rerun, type RerunRequest, rerunExecutions } from "./rerun-execution.ts";
import { type ExecutionRequest, type Started, startExecutions } from "./start-execution.ts";

/** An execution with the details derived from its events. */
export interface ExecutionDetail extends DerivedDetail {
  row: ShownRow;
}

/** The end of an execution; its result inline, or by reference if it is large. */
export type ExecutionOutcome = Pick<ExecutionResult, "status" | "error" | "result">;

/** The operations on executions. Unknown ids: `FlowError` NOT_FOUND. */
export interface Executions extends Pausing {
  /** See {@link startExecutions}. */
  start(request: ExecutionRequest): Promise<Started>;
  /** See {@link rerunExecutions}. */
  rerun(executionId: string, request: RerunRequest): Promise<Rerun>;
  /** Newest first. Throws `FlowError` INVALID_INPUT for a cursor of another list. */
  list(filter: ExecutionFilter & Visible, page: PageQuery): Promise<Listed<ListedRow>>;
  /** See {@link countExecutions}. */
  counts(filter: ExecutionFilter & Visible): ReturnType<typeof countExecutions>;
  /** With `stepsAfter`, an event's id, only the steps to which something happened after it; all steps if too much happened. */
  detail(executionId: string, stepsAfter?: number): Promise<ExecutionDetail>;
  /**
   * The steps that a rerun has taken over, each with the execution in which it ran; none of another execution. Rejects with `FlowError`
   * NOT_FOUND.
   */
  reusedSteps(executionId: string): Promise<ReadonlyMap<string, string>>;
  /**
   * The execution as it was after one of its events, the newest by default. Throws `FlowError` NOT_FOUND for an event of another
   * execution.
   */
  state(executionId: string, eventId?: number): Promise<ExecutionStateAnswer>;
  events(executionId: string, request: EventListQuery): Promise<EventPage>;
  marks(executionId: string, request: EventMarksQuery): Promise<EventMarks>;
  /** See {@link renderedValues}. */
  rendered(executionId: string, request: RenderedRequest): Promise<RenderedAnswer>;
  /** Events after `after` as they are written, up to the one that ends the execution; ends early when `signal` is aborted. */
  follow(
    executionId: string,
    request: FollowRequest,
    signal: AbortSignal,
  ): Promise<AsyncGenerator<EventRecord | "idle">>;
  /** See {@link awaitResult}. */
  result(executionId: string, request: ResultRequest, signal: AbortSignal): Promise<ExecutionResult>;
  /** Waits for the end, at most `waitMs`; returns the result as shown to people, or undefined while it runs. */
  outcome(
    executionId: string,
    request: Pick<ResultRequest, "waitMs" | "isFresh">,
    signal: AbortSignal,
  ): Promise<ExecutionOutcome | undefined>;
  /** See {@link cancelExecutions}. */
  cancel(executionId: string, request: CancelRequest): Promise<Cancelled>;
  /** See {@link overrideSteps}. */
  override(executionId: string, step: string, request: OverrideRequest): Promise<StepStatus>;
  /** See {@link Orchestrator.signal}. */
  signal: Orchestrator["signal"];
  /** The execution started under this idempotency key of a caller; undefined if not found. */
  startedUnder(caller: string, key: string): Promise<string | undefined>;
  /** True if another execution called this one. */
  isChild(executionId: string): Promise<boolean>;
  /** See {@link lineageOf}. */
  lineage(executionId: string, request: LineageRequest): Promise<Lineage>;
  /** Throws `FlowError` CONFLICT while it is open. */
  remove(executionId: string): Promise<void>;
}

/** Results deleted by one statement. */
const RESULTS_MAX = 500;

/** What the executions service needs. */
export interface ExecutionsDeps {
  database: Database;
  orchestrator: Orchestrator;
  /** The log, to be read. */
  store: Pick<ExecutionStore, "find" | "eventsAfter" | "snapshotUpTo">;
  reader: ExecutionReader;
  results: Pick<Results, "removeOf">;
  /** Compiled playbooks, for starting. */
  programs(catalogId: string): Promise<CommandProgram>;
  access: Pick<Access, "user">;
  audit: Pick<Audit, "refused">;
  now(): number;
}

/** The executions of a database. */
export function createExecutions(deps: ExecutionsDeps): Executions {
  const { database, reader, results } = deps;
  const cancel = cancelExecutions(deps);
  const pausing = createPausing(deps);
  const rowOf = async (executionId: string) => {
    const row = await findExecution(database, executionId);
    if (row === undefined) throw unknownExecution(executionId);
    return row;
  };
  return {
    ...beginning(deps, cancel, pausing),
    async list(filter, { limit, cursor }) {
      const key = cursor === undefined ? {} : { cursor: idCursor(cursor) };
      const { items, next } = await listExecutions(database, filter, { limit, ...key });
      return { items, nextCursor: next === undefined ? null : encodeCursor(next) };
    },
    counts: (filter) => countExecutions(database, filter),
    reusedSteps: (executionId) => reusedStepsOf(database, reader, executionId),
    async detail(executionId, stepsAfter) {
      const row = await findShownExecution(database, executionId);
      if (row === undefined) throw unknownExecution(executionId);
      // In this order: the answer names the row's event, so that later changes are reported again next time.
      const changed = stepsAfter === undefined ? undefined : await changedSteps(database, executionId, stepsAfter);
      const view = await reader.read(executionId, row.lastEventId);
      if (view === undefined) throw unknownExecution(executionId);
      const { program } = view.source;
      const children = mayHaveChildren(view.state, program) ? await listOpenChildren(database, executionId) : [];
      return { row, ...detailOf(view, children, deps.now(), changed) };
    },
    state: (executionId, eventId) => stateAfter(reader, executionId, eventId, rowOf),
    async events(executionId, request) {
      // Events of an execution that retention has deleted stay in the log until their month is dropped.
      const [page] = await Promise.all([listEvents(database, executionId, request), rowOf(executionId)]);
      return page;
    },
    async marks(executionId, request) {
      const [marks] = await Promise.all([markEvents(database, executionId, request), rowOf(executionId)]);
      return marks;
    },
    rendered: (executionId, request) =>
      renderedValues({ database, programs: reader.program, ended: reader.command }, executionId, request),
    async follow(executionId, request, signal) {
      await rowOf(executionId);
      return followEvents(deps, executionId, request, signal);
    },
    result: (executionId, request, signal) => awaitResult(deps, executionId, request, signal),
    async outcome(executionId, request, signal) {
      const { status, hasEnded, result, error } = await awaitResult(deps, executionId, request, signal);
      return hasEnded ? { status, result, error } : undefined;
    },
    cancel,
    override: overrideSteps(deps),
    signal: deps.orchestrator.signal,
    ...pausing,
    startedUnder: async (caller, key) => (await findStartByKey(database, caller, key))?.executionId,
    isChild: async (executionId) => (await rowOf(executionId)).parentExecutionId !== null,
    lineage: (executionId, request) => lineageOf(database, executionId, request),
    async remove(executionId) {
      const outcome = await deleteExecution(database, executionId, async (owners) => {
        while ((await results.removeOf(owners, RESULTS_MAX)) === RESULTS_MAX);
      });
      if (outcome === "missing") throw unknownExecution(executionId);
      if (outcome === "deleted") return;
      const message = `Execution ${executionId} was not deleted: it has not ended. Cancel it first`;
      throw new FlowError("CONFLICT", message);
    },
  };
}

async function stateAfter(
  reader: ExecutionReader,
  executionId: string,
  eventId: number | undefined,
  rowOf: (executionId: string) => Promise<{ lastEventId: number }>,
): Promise<ExecutionStateAnswer> {
  const { lastEventId } = await rowOf(executionId);
  const past = await reader.past(executionId, eventId ?? lastEventId);
  if (past === undefined) throw unknownEvent(executionId, eventId ?? lastEventId);
  return { execution_id: executionId, ...pastStateOf(past) };
}

function unknownEvent(executionId: string, eventId: number): FlowError {
  const message = `Event ${eventId} is not in the log of execution ${executionId}`;
  return new FlowError(
    "NOT_FOUND",
    `${message}. Its log has those that it has: GET /api/executions/${executionId}/events`,
  );
}

/** What begins executions. */
function beginning(
  deps: ExecutionsDeps,
  cancel: Executions["cancel"],
  { pause }: Pausing,
): Pick<Executions, "start" | "rerun"> {
  const stop = (id: string, reason: string) => cancel(id, { reason, cascade: true });
  const start = startExecutions({
    ...deps,
    cancel: stop,
    pauseOf: async (parentId, lastEventId) => (await deps.reader.read(parentId, lastEventId))?.state.paused,
    pause: (id, { reason, by }) => pause(id, { ...defined({ reason, by }), cascade: true }),
  });
  return {
    start,
    rerun: rerunExecutions({ ...deps, start, cancel: stop }),
  };
}

async function reusedStepsOf(
  database: Database,
  reader: Pick<ExecutionReader, "read">,
  executionId: string,
): Promise<ReadonlyMap<string, string>> {
  const row = await findShownExecution(database, executionId);
  if (row === undefined) throw unknownExecution(executionId);
  // Nothing is folded for what is no rerun.
  if (row.rerunOf === null) return new Map();
  const view = await reader.read(executionId, row.lastEventId);
  const steps = Object.entries(view?.state.steps ?? {});
  return new Map(
    steps.flatMap(([name, { reusedFrom }]) => (reusedFrom === undefined ? [] : [[name, reusedFrom.execution_id]])),
  );
}
