import * as v from "valibot";
import { DraftBody, DraftStepBody, PreviewAnswer, PreviewBody } from "../api/catalog.ts";
import { EventIdText, EventsAnswer, EventsQuery, MarksAnswer, MarksQuery, ShortValues } from "../api/events.ts";
import {
  CancelAnswer,
  CancelBody,
  DeleteAnswer,
  ExecuteAnswer,
  ExecuteBody,
  ExecutionAnswer,
  ExecutionCountsAnswer,
  ExecutionQuery,
  ExecutionStateAnswer,
  ExecutionsAnswer,
  PauseAnswer,
  PauseBody,
  ResultAnswer,
  ResultQuery,
  StateQuery,
} from "../api/executions.ts";
import { RenderedAnswer, RenderedQuery } from "../api/rendered.ts";
import { RerunAnswer, RerunBody } from "../api/steering.ts";
import { ExecutionCountsQuery, ExecutionsQuery } from "../rules/execution-filter-schema.ts";
import { LineageAnswer } from "../rules/lineage.ts";
import { PageQuery } from "../words/wire.ts";
import { contract } from "./contract.ts";

/** Starting executions (interface specification, Execution). */
export const EXECUTE_ROUTES = {
  execute: contract({
    method: "post",
    path: "/api/execute",
    summary:
      "Starts an execution; a worker starts children of its own execution only. With an Idempotency-Key it starts one, however often it is sent",
    access: "worker",
    claim: "asked",
    user: { action: "execute", of: "asked" },
    body: ExecuteBody,
    answer: ExecuteAnswer,
    refusals: [404, 409, 413, 422],
  }),
} as const;

/** Texts that run without being registered, and what a start would begin with. */
export const DRAFT_ROUTES = {
  run: contract({
    method: "post",
    path: "/api/execute/draft",
    summary:
      "Runs a document without registering it: the execution has version 0, and its text is kept with it. With an Idempotency-Key it starts one, however often it is sent",
    access: "operator",
    // Who runs a text under a path does what registering it there and starting it would do: both are asked.
    user: { action: "modify", of: "asked" },
    body: DraftBody,
    answer: ExecuteAnswer,
    refusals: [404, 409, 413, 422, 429],
  }),
  step: contract({
    method: "post",
    path: "/api/execute/draft/step",
    summary:
      "Runs one step of a document that is not registered, with the inputs that it had in an execution of its path: a rerun of that one, of version 0. With `dry_run` it answers the plan. With an Idempotency-Key it starts one, however often it is sent",
    access: "operator",
    user: { action: "modify", of: "asked" },
    body: DraftStepBody,
    answer: RerunAnswer,
    status: 202,
    refusals: [404, 409, 413, 422, 429],
  }),
  preview: contract({
    method: "post",
    path: "/api/execute/preview",
    summary:
      "What an execution would begin with: its workload, rendered, and what is wrong with its inputs. It starts nothing",
    access: "operator",
    // Of a text, whose templates may read as much as those of one that runs, what a draft needs too.
    user: { action: "view", of: "asked" },
    body: PreviewBody,
    answer: PreviewAnswer,
    refusals: [404, 413, 422, 429],
  }),
} as const;

/** Executions (interface specification, Execution; and what the service adds to it). */
export const EXECUTION_ROUTES = {
  list: contract({
    method: "get",
    path: "/api/executions",
    summary: "Executions, newest first",
    access: "operator",
    user: { action: "view", of: "list" },
    query: ExecutionsQuery,
    answer: ExecutionsAnswer,
    refusals: [422],
  }),
  counts: contract({
    method: "get",
    path: "/api/executions/counts",
    summary: "How many executions a list has of each state",
    access: "operator",
    user: { action: "view", of: "list" },
    query: ExecutionCountsQuery,
    answer: ExecutionCountsAnswer,
    refusals: [422],
  }),
  detail: contract({
    method: "get",
    path: "/api/executions/:execution_id",
    summary: "An execution with its steps, its inputs and, when it has ended, its result",
    access: "worker",
    claim: "tree",
    user: { action: "view", of: "execution" },
    query: ExecutionQuery,
    answer: ExecutionAnswer,
    refusals: [404, 422],
  }),
  state: contract({
    method: "get",
    path: "/api/executions/:execution_id/state",
    summary: "An execution as it was after one of its events: steps, variables, open commands and what it waited for",
    access: "operator",
    user: { action: "view", of: "execution" },
    query: StateQuery,
    answer: ExecutionStateAnswer,
    refusals: [404, 422],
  }),
  events: contract({
    method: "get",
    path: "/api/executions/:execution_id/events",
    summary: "An execution's events in their order",
    access: "worker",
    claim: "tree",
    user: { action: "view", of: "execution" },
    query: EventsQuery,
    answer: EventsAnswer,
    refusals: [404, 422],
  }),
  marks: contract({
    method: "get",
    path: "/api/executions/:execution_id/events/marks",
    summary: "How many events there are, and where each so many of them stand: the table of contents of a long log",
    access: "worker",
    claim: "tree",
    user: { action: "view", of: "execution" },
    query: MarksQuery,
    answer: MarksAnswer,
    refusals: [404, 422],
  }),
  rendered: contract({
    method: "get",
    path: "/api/executions/:execution_id/rendered",
    summary:
      "What the templates of a command's tasks came to, without secrets; of a command that has ended by way of the events before it, 404 where these are more than 200,000",
    access: "operator",
    user: { action: "view", of: "execution" },
    query: RenderedQuery,
    answer: RenderedAnswer,
    refusals: [404, 422],
  }),
  result: contract({
    method: "get",
    path: "/api/executions/:execution_id/result",
    summary:
      "The result of an execution or of one of its steps, waiting for the end if asked to; still running is 200 too",
    access: "worker",
    claim: "child",
    user: { action: "view", of: "execution" },
    query: ResultQuery,
    answer: ResultAnswer,
    refusals: [404, 422],
  }),
  cancel: contract({
    method: "post",
    path: "/api/executions/:execution_id/cancel",
    summary: "Cancels an execution and those that it has called; a worker cancels children of its own execution only",
    access: "worker",
    claim: "stop",
    user: { action: "execute", of: "execution" },
    body: CancelBody,
    bodyOptional: true,
    answer: CancelAnswer,
    refusals: [404, 413, 422],
  }),
  pause: contract({
    method: "post",
    path: "/api/executions/:execution_id/pause",
    summary:
      "Pauses an execution and those that it has called: nothing further is issued or claimed, what workers have goes on and is recorded",
    access: "operator",
    user: { action: "execute", of: "execution" },
    audit: { action: "execution.pause", resource: "execution/:execution_id" },
    body: PauseBody,
    bodyOptional: true,
    answer: PauseAnswer,
    status: 202,
    refusals: [404, 409, 413, 422],
  }),
  resume: contract({
    method: "post",
    path: "/api/executions/:execution_id/resume",
    summary: "Resumes an execution and those that it has called: it goes on with everything that came due meanwhile",
    access: "operator",
    user: { action: "execute", of: "execution" },
    audit: { action: "execution.resume", resource: "execution/:execution_id" },
    body: PauseBody,
    bodyOptional: true,
    answer: PauseAnswer,
    status: 202,
    refusals: [404, 409, 413, 422],
  }),
  lineage: contract({
    method: "get",
    path: "/api/executions/:execution_id/lineage",
    summary:
      "Where an execution comes from and what came from it: by calls, reruns and hooks; without those that the caller may not see",
    access: "operator",
    user: { action: "view", of: "execution" },
    query: PageQuery,
    answer: LineageAnswer,
    refusals: [404, 422],
  }),
  rerun: contract({
    method: "post",
    path: "/api/executions/:execution_id/rerun",
    summary:
      "Begins a new execution that repeats one that has ended, from some of its steps on: what ran before them is taken over. With `dry_run` it answers the plan. With an Idempotency-Key it begins one, however often it is sent",
    access: "operator",
    user: { action: "execute", of: "execution" },
    audit: { action: "execution.rerun", resource: "execution/:execution_id" },
    body: RerunBody,
    bodyOptional: true,
    answer: RerunAnswer,
    status: 202,
    refusals: [404, 409, 413, 422],
  }),
  delete: contract({
    method: "delete",
    path: "/api/executions/:execution_id",
    summary: "Deletes an execution that has ended, with its events, commands and results",
    access: "operator",
    user: { action: "modify", of: "execution" },
    answer: DeleteAnswer,
    refusals: [404, 409],
  }),
} as const;

/** Live events. */
export const STREAM_ROUTES = {
  stream: contract({
    method: "get",
    path: "/api/executions/:execution_id/stream",
    summary:
      "Server-sent events: the execution's events as they come, `id:` being the event's; `event: end` after the last",
    access: "worker",
    claim: "tree",
    user: { action: "view", of: "execution" },
    query: v.object({
      after: v.exactOptional(
        v.pipe(EventIdText, v.description("Events after this one. The header Last-Event-ID wins.")),
      ),
      values: v.exactOptional(ShortValues),
    }),
    contentType: "text/event-stream",
    refusals: [404, 422, 429],
  }),
} as const;
