import type { Context } from "hono";
import type * as v from "valibot";
import type { EventsAnswer, EventsFilter, EventsQuery } from "../../schema/api/events.ts";
import type { ExecutionItem } from "../../schema/api/executions.ts";
import { EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import { isPathPattern } from "../../schema/rules/execution-filter.ts";
import type { RelativeAnswer } from "../../schema/rules/lineage.ts";
import { defined } from "../../schema/words/defined.ts";
import { PAGE_MAX, pageSize } from "../../schema/words/wire.ts";
import { type Audit, audited } from "../../services/access/audit.ts";
import type { ExecutionDetail, Executions } from "../../services/executions/executions.ts";
import type { Lineage } from "../../services/executions/lineage.ts";
import { callerOf } from "../http/audit-caller.ts";
import { listening } from "../http/client-signal.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { type RouteHandler, serve } from "../http/serve.ts";
import { pathId } from "../http/validate.ts";
import { listFilter } from "./list-filter.ts";
import { rerunRoute } from "./rerun.ts";

/** Executions (interface specification, Execution; and what the service adds to it). */
export function executionRoutes(executions: Executions, stopping: AbortSignal, audit: Pick<Audit, "record">) {
  return serve(EXECUTION_ROUTES, {
    pause: steering("pause", executions, audit),
    resume: steering("resume", executions, audit),
    rerun: rerunRoute(executions),
    list: listing(executions),
    counts: async ({ query, json }, c) => json({ counts: await executions.counts(await permitted(query, c)) }),
    detail: async ({ query: { steps_after }, maskedJson }, c) => {
      const stepsAfter = steps_after === undefined ? undefined : Number(steps_after);
      const { row, stepsTotal, ...told } = await executions.detail(executionId(c), stepsAfter);
      const rerun = row.rerunOf === null ? {} : { rerun_of: row.rerunOf };
      const more = { ...rerun, last_event_id: row.lastEventId, steps_total: stepsTotal };
      const answer = { ...itemOf(row, c), result: row.result ?? null, ...more, ...told };
      return maskedJson(answer);
    },
    state: async ({ query: { at }, maskedJson }, c) => maskedJson(await executions.state(executionId(c), numberOf(at))),
    events: async ({ query, maskedJson }, c) => {
      const { events, next } = await executions.events(executionId(c), eventsRequestOf(query));
      // Records are what the log has: their shape was checked when they were written.
      const page = { events, next_cursor: next === undefined ? null : String(next) } as unknown as EventsAnswer;
      return maskedJson(page);
    },
    marks: async ({ query: { after = "0", counted = "0", every = String(PAGE_MAX), ...filter }, json }, c) => {
      const request = { ...filterOf(filter), after: Number(after), counted: Number(counted), every: Number(every) };
      const { count, marks, last, isPartial } = await executions.marks(executionId(c), request);
      const answer = { count, every: request.every, last_event_id: last, marks, more: isPartial };
      return json(answer);
    },
    rendered: async ({ query: { command_id: commandId, iteration, attempt }, maskedJson }, c) => {
      const request = { commandId, iteration: numberOf(iteration), attempt: numberOf(attempt) };
      return maskedJson(await executions.rendered(executionId(c), request));
    },
    result: async ({ query: { wait_ms = "0", step, sealed }, json, maskedJson }, c) => {
      const listener = listening(c, stopping);
      try {
        // Playbooks read through references, and may pass on sealed values; people need neither.
        const isStored = sealed === "true" && c.var.role !== "user";
        const request = { waitMs: Number(wait_ms), ...defined({ step }), isStored };
        const found = await executions.result(executionId(c), request, listener.signal);
        const { executionId: id, path, status, result, error } = found;
        const answer = { execution_id: id, path, status, result, error };
        return isStored ? json(answer) : maskedJson(answer);
      } finally {
        listener.done();
      }
    },
    cancel: async ({ body: { reason = "Cancelled by request", cascade = true }, json }, c) => {
      const id = executionId(c);
      const { status, children } = await executions.cancel(id, { reason, cascade });
      return json({ execution_id: id, status, children_cancelled: children });
    },
    lineage: async ({ query: { limit, cursor }, json }, c) => {
      const maySee = (path: string) => c.var.may("view", path);
      const page = { limit: pageSize(limit), ...defined({ cursor }), maySee };
      const { changed, ancestors, descendants, nextCursor } = await executions.lineage(executionId(c), page);
      const answer = {
        ...(changed !== null && { changed }),
        ancestors: ancestors.map(relativeOf),
        descendants: descendants.map(relativeOf),
        next_cursor: nextCursor,
      };
      return json(answer);
    },
    delete: async ({ json }, c) => {
      const id = executionId(c);
      await executions.remove(id);
      return json({ status: "success", execution_id: id });
    },
  });
}

/** Lists what a caller asks for and may see. */
function listing(executions: Pick<Executions, "list">): RouteHandler<typeof EXECUTION_ROUTES.list> {
  return async ({ query: { limit, cursor, ...parameters }, maskedJson }, c) => {
    const filter = await permitted(parameters, c);
    const page = { limit: pageSize(limit), ...defined({ cursor }) };
    const { items, nextCursor } = await executions.list(filter, page);
    const listed = items.map((item) => ({ ...itemOf(item, c), ...nowOf(item), has_called: item.hasCalled }));
    return maskedJson({ executions: listed, next_cursor: nextCursor });
  };
}

/** What a query asks for, of what the caller may see. */
async function permitted(parameters: Parameters<typeof listFilter>[0], c: Context<RouteEnvironment>) {
  const filter = listFilter(parameters, c.req.query());
  const { path } = filter;
  // For a single path a user gets FORBIDDEN instead of an empty list.
  const isOnePath = path !== undefined && !isPathPattern(path);
  if (isOnePath) await c.var.permit("view", path);
  return { ...filter, visible: isOnePath ? undefined : c.var.visible("view") };
}

/** What an open execution of a list does now. */
function nowOf({ present }: Awaited<ReturnType<Executions["list"]>>["items"][number]): Pick<ExecutionItem, "now"> {
  if (present === null) return {};
  const { step, does, kind, name, dueAt } = present;
  const wait = kind !== null && { wait: { kind, name, until: dueAt === null ? null : new Date(dueAt).toISOString() } };
  return { now: { step, does, ...wait } };
}

/** Pauses or resumes. Who did it stands in the log of the execution and in the audit log. */
function steering(
  name: "pause" | "resume",
  executions: Pick<Executions, "pause" | "resume">,
  audit: Pick<Audit, "record">,
): RouteHandler<typeof EXECUTION_ROUTES.pause> & RouteHandler<typeof EXECUTION_ROUTES.resume> {
  return async ({ body: { reason, cascade = true }, json }, c) => {
    const id = executionId(c);
    const route = EXECUTION_ROUTES[name];
    const caller = callerOf(c, route);
    const request = { by: caller.actor ?? caller.actorKind, cascade, ...defined({ reason }) };
    const { status, isChanged, children } = await executions[name](id, request);
    const detail = { cascade, children, ...defined({ reason }) };
    await audit.record(audited(caller, route.audit.action, `execution/${id}`, { detail }));
    return json({ execution_id: id, status, children }, isChanged || children > 0 ? 202 : 200);
  };
}

/** The page of a log that a query asks for. Backwards the cursor is the end, forwards the beginning. */
function eventsRequestOf(query: v.InferOutput<typeof EventsQuery>) {
  const { after, before, cursor, limit, order, values, ...filter } = query;
  const isDescending = order === "desc";
  const to = isDescending ? (cursor ?? before) : before;
  return {
    ...filterOf(filter),
    after: Number((isDescending ? undefined : cursor) ?? after ?? 0),
    ...(to !== undefined && { before: Number(to) }),
    limit: pageSize(limit),
    isDescending,
    isShort: values === "short",
  };
}

/** The filter of a query's words. */
function filterOf(query: v.InferOutput<typeof EventsFilter>) {
  const { event_type: eventType, step, command_id: commandId, worker, failed, q: text } = query;
  return {
    ...defined({ eventType, step, commandId, worker }),
    ...(failed !== undefined && { isFailed: true }),
    ...defined({ text }),
  };
}

function numberOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text);
}

function executionId(c: Context): string {
  return pathId(c.req.param("execution_id") ?? "", "execution");
}

/** The wire shape of a relative. One at whose end nothing is known of its origin any more was called. */
function relativeOf({
  executionId: id,
  path,
  version,
  status,
  of,
  link,
  trigger,
  changed,
  startedAt,
  deletedAt,
}: Lineage["ancestors"][number]): RelativeAnswer {
  return {
    ...{ execution_id: id, path, version, status, by: link ?? "parent", of },
    ...(trigger !== null && link === "trigger" && { trigger }),
    ...(changed !== null && { changed }),
    started_at: startedAt?.toISOString() ?? null,
    ...(deletedAt !== null && { deleted_at: deletedAt.toISOString() }),
  };
}

/** The wire shape of an execution's row. */
function itemOf(row: ExecutionDetail["row"], c: Context<RouteEnvironment>): ExecutionItem {
  const { startedAt, endedAt, result, error, origin, labels } = row;
  // The path of another execution, which not everyone may see who sees this one.
  const isPath = origin.kind === "execution" || origin.kind === "rerun";
  const isHidden = isPath && origin.name !== null && !c.var.may("view", origin.name);
  return {
    execution_id: row.executionId,
    catalog_id: row.catalogId,
    path: row.path,
    version: row.version,
    status: row.status,
    progress: row.progress,
    parent_execution_id: row.parentExecutionId,
    started_by: isHidden ? { ...origin, name: null } : origin,
    labels,
    started_at: startedAt.toISOString(),
    ended_at: endedAt?.toISOString() ?? null,
    duration_ms: endedAt === null ? null : Math.max(0, endedAt.getTime() - startedAt.getTime()),
    ...defined({ result }),
    error: error as ExecutionItem["error"],
  };
}
