import { type Context, Hono } from "hono";
import type * as v from "valibot";
import { EventsAnswer, type EventsFilter, EventsQuery, MarksAnswer, MarksQuery } from "../../schema/api/events.ts";
import {
  CancelAnswer,
  CancelBody,
  DeleteAnswer,
  ExecutionAnswer,
  type ExecutionItem,
  ExecutionQuery,
  ExecutionsAnswer,
  ExecutionsQuery,
  ResultAnswer,
  ResultQuery,
  statesIn,
} from "../../schema/api/executions.ts";
import { RenderedAnswer, RenderedQuery } from "../../schema/api/rendered.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import { PAGE_MAX, pageSize } from "../../schema/words/wire.ts";
import type { ExecutionDetail, Executions } from "../../services/executions/executions.ts";
import { listening } from "../http/client-signal.ts";
import { contract } from "../http/contract.ts";
import { maskedJson } from "../http/masked-json.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { theExecution } from "../http/subject.ts";
import { jsonBody, pathId, queryOf } from "../http/validate.ts";

const LIST = contract({
  method: "get",
  path: "/api/executions",
  summary: "Executions, newest first",
  access: "worker",
  user: { action: "view", of: "list" },
  query: ExecutionsQuery,
  answer: ExecutionsAnswer,
  refusals: [422],
});

const DETAIL = contract({
  method: "get",
  path: "/api/executions/:execution_id",
  summary: "An execution with its steps, its inputs and, when it has ended, its result",
  access: "worker",
  user: { action: "view", of: theExecution },
  query: ExecutionQuery,
  answer: ExecutionAnswer,
  refusals: [404, 422],
});

const EVENTS = contract({
  method: "get",
  path: "/api/executions/:execution_id/events",
  summary: "An execution's events in their order",
  access: "worker",
  user: { action: "view", of: theExecution },
  query: EventsQuery,
  answer: EventsAnswer,
  refusals: [404, 422],
});

const MARKS = contract({
  method: "get",
  path: "/api/executions/:execution_id/events/marks",
  summary: "How many events there are, and where each so many of them stand: the table of contents of a long log",
  access: "worker",
  user: { action: "view", of: theExecution },
  query: MarksQuery,
  answer: MarksAnswer,
  refusals: [404, 422],
});

const RENDERED = contract({
  method: "get",
  path: "/api/executions/:execution_id/rendered",
  summary: "What the templates of a command's tasks came to, without secrets",
  access: "operator",
  user: { action: "view", of: theExecution },
  query: RenderedQuery,
  answer: RenderedAnswer,
  refusals: [404, 422],
});

const RESULT = contract({
  method: "get",
  path: "/api/executions/:execution_id/result",
  summary:
    "The result of an execution or of one of its steps, waiting for the end if asked to; still running is 200 too",
  access: "worker",
  user: { action: "view", of: theExecution },
  query: ResultQuery,
  answer: ResultAnswer,
  refusals: [404, 422],
});

const CANCEL = contract({
  method: "post",
  path: "/api/executions/:execution_id/cancel",
  summary: "Cancels an execution and those that it has called; a worker cancels children only",
  access: "worker",
  user: { action: "execute", of: theExecution },
  body: CancelBody,
  bodyOptional: true,
  answer: CancelAnswer,
  refusals: [404, 413, 422],
});

const DELETE = contract({
  method: "delete",
  path: "/api/executions/:execution_id",
  summary: "Deletes an execution that has ended, with its events, commands and results",
  access: "operator",
  user: { action: "modify", of: theExecution },
  answer: DeleteAnswer,
  refusals: [404, 409],
});

/** Contracts of {@link executionRoutes}. */
export const EXECUTION_CONTRACTS = [LIST, DETAIL, EVENTS, MARKS, RENDERED, RESULT, CANCEL, DELETE];

/** Executions (interface specification, Execution; and what the service adds to it). */
export function executionRoutes(executions: Executions, stopping: AbortSignal) {
  return new Hono<RouteEnvironment>()
    .get(LIST.path, queryOf(LIST.query), async (c) => {
      const { limit, cursor, status, path_contains, parent_execution_id, id_prefix, since, until, ...filter } =
        c.req.valid("query");
      const asked = {
        ...filter,
        ...(status !== undefined && { statuses: statesIn(status) }),
        ...(path_contains !== undefined && { pathContains: path_contains }),
        ...(parent_execution_id !== undefined && { parentExecutionId: parent_execution_id }),
        ...(id_prefix !== undefined && { idPrefix: id_prefix }),
        ...(since !== undefined && { since: new Date(since) }),
        ...(until !== undefined && { until: new Date(until) }),
      };
      // For a single path a user gets FORBIDDEN instead of an empty list.
      if (filter.path !== undefined) await c.var.permit("view", filter.path);
      const visible = filter.path === undefined ? c.var.visible("view") : undefined;
      const page = { limit: pageSize(limit), ...(cursor !== undefined && { cursor }) };
      const { items, nextCursor } = await executions.list({ ...asked, visible }, page);
      return maskedJson(c, { executions: items.map(itemOf), next_cursor: nextCursor } satisfies ExecutionsAnswer);
    })
    .get(DETAIL.path, queryOf(DETAIL.query), async (c) => {
      const { steps_after } = c.req.valid("query");
      const stepsAfter = steps_after === undefined ? undefined : Number(steps_after);
      const { row, stepsTotal, ...told } = await executions.detail(executionId(c), stepsAfter);
      const more = { last_event_id: row.lastEventId, steps_total: stepsTotal };
      const answer = { ...itemOf(row), result: row.result ?? null, ...more, ...told };
      return maskedJson(c, answer satisfies ExecutionAnswer);
    })
    .get(EVENTS.path, queryOf(EVENTS.query), async (c) => {
      const { after, before, cursor, limit, order, values, ...filter } = c.req.valid("query");
      const isDescending = order === "desc";
      const to = isDescending ? (cursor ?? before) : before;
      const { events, next } = await executions.events(executionId(c), {
        ...filterOf(filter),
        after: Number((isDescending ? undefined : cursor) ?? after ?? 0),
        ...(to !== undefined && { before: Number(to) }),
        limit: pageSize(limit),
        isDescending,
        isShort: values === "short",
      });
      // Records are what the log has: their shape was checked when they were written.
      const page = { events, next_cursor: next === undefined ? null : String(next) } as unknown as EventsAnswer;
      return maskedJson(c, page);
    })
    .get(MARKS.path, queryOf(MARKS.query), async (c) => {
      const { after = "0", counted = "0", every = String(PAGE_MAX), ...filter } = c.req.valid("query");
      const asked = { ...filterOf(filter), after: Number(after), counted: Number(counted), every: Number(every) };
      const { count, marks, last, isPartial } = await executions.marks(executionId(c), asked);
      const answer = { count, every: asked.every, last_event_id: last, marks, more: isPartial };
      return c.json(answer satisfies MarksAnswer);
    })
    .get(RENDERED.path, queryOf(RENDERED.query), async (c) => {
      const { command_id: commandId, iteration, attempt } = c.req.valid("query");
      const asked = { commandId, iteration: numberOf(iteration), attempt: numberOf(attempt) };
      return maskedJson(c, (await executions.rendered(executionId(c), asked)) satisfies RenderedAnswer);
    })
    .get(RESULT.path, queryOf(RESULT.query), async (c) => {
      const { wait_ms = "0", step, sealed } = c.req.valid("query");
      const listener = listening(c, stopping);
      try {
        const asked = { waitMs: Number(wait_ms), ...(step !== undefined && { step }) };
        const found = await executions.result(executionId(c), asked, listener.signal);
        const { executionId: id, path, status, result, shown, error } = found;
        const answer = { execution_id: id, path, status, error };
        // Who runs a playbook reads through references, and may want to pass on what is sealed; a person has no use for either.
        if (sealed === "true" && c.var.role !== "user") {
          return c.json({ ...answer, result: result as Json } satisfies ResultAnswer);
        }
        return maskedJson(c, { ...answer, result: shown } satisfies ResultAnswer);
      } finally {
        listener.done();
      }
    })
    .post(CANCEL.path, jsonBody(CANCEL.body, CANCEL.bodyOptional), async (c) => {
      const id = executionId(c);
      const { reason = "Cancelled by request", cascade = true } = c.req.valid("json");
      if (c.get("role") === "worker" && !(await executions.isChild(id))) {
        throw new FlowError(
          "FORBIDDEN",
          `A worker can cancel only executions that another one called, and ${id} was not called by one`,
        );
      }
      const { status, children } = await executions.cancel(id, { reason, cascade });
      return c.json({ execution_id: id, status, children_cancelled: children } satisfies CancelAnswer);
    })
    .delete(DELETE.path, async (c) => {
      const id = executionId(c);
      await executions.remove(id);
      return c.json({ status: "success", execution_id: id } satisfies v.InferOutput<typeof DeleteAnswer>);
    });
}

/** The filter of a query's words. */
function filterOf(query: v.InferOutput<typeof EventsFilter>) {
  const { event_type: eventType, step, command_id: commandId, worker, failed, q: text } = query;
  return {
    ...(eventType !== undefined && { eventType }),
    ...(step !== undefined && { step }),
    ...(commandId !== undefined && { commandId }),
    ...(worker !== undefined && { worker }),
    ...(failed !== undefined && { isFailed: true }),
    ...(text !== undefined && { text }),
  };
}

function numberOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text);
}

function executionId(c: Context): string {
  return pathId(c.req.param("execution_id") ?? "", "execution");
}

/** The wire shape of an execution's row. */
function itemOf(row: ExecutionDetail["row"]): ExecutionItem {
  const { startedAt, endedAt, result, error } = row;
  return {
    execution_id: row.executionId,
    catalog_id: row.catalogId,
    path: row.path,
    version: row.version,
    status: row.status,
    progress: row.progress,
    parent_execution_id: row.parentExecutionId,
    started_at: startedAt.toISOString(),
    ended_at: endedAt?.toISOString() ?? null,
    duration_ms: endedAt === null ? null : Math.max(0, endedAt.getTime() - startedAt.getTime()),
    ...(result !== undefined && { result }),
    error: error as ExecutionItem["error"],
  };
}
