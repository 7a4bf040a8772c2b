import { ClaimAnswer, ClaimBody, ClaimedCommandAnswer, ClaimOneBody } from "../api/commands.ts";
import { BatchAnswer, BatchBody, BatchStatus, SingleEventAnswer, SingleEventBody } from "../api/events.ts";
import {
  CreatePoolBody,
  DeregisterAnswer,
  DeregisterBody,
  HeartbeatAnswer,
  HeartbeatBody,
  PoolsAnswer,
  PoolsQuery,
  PoolTokenAnswer,
  RegisterWorkerAnswer,
  RegisterWorkerBody,
  WorkerPoolItem,
  WorkerPoolsAnswer,
} from "../api/workers.ts";
import { contract } from "./contract.ts";

/** How many earlier tries of a report ended without an answer: its server may have died of it. */
export const UNANSWERED_HEADER = "x-flow-unanswered";

/** Length of a report's JSON in bytes, where its attachments follow: large results, one after the other, as they are to be stored. */
export const REPORT_BYTES_HEADER = "x-flow-report-bytes";

/** The pool of workers (Worker protocol). */
export const WORKER_ROUTES = {
  register: contract({
    method: "post",
    path: "/api/worker/pool/register",
    summary: "Registers a worker under its name, or registers it again",
    access: "worker",
    body: RegisterWorkerBody,
    answer: RegisterWorkerAnswer,
    refusals: [413, 422],
  }),
  heartbeat: contract({
    method: "post",
    path: "/api/worker/pool/heartbeat",
    summary:
      "Renews the leases of what a worker runs, and tells it what to stop, at once with `wait_ms`; 404 `unknown` tells it to register again, 409 that another process has registered under its name",
    access: "worker",
    body: HeartbeatBody,
    answer: HeartbeatAnswer,
    refusals: [404, 409, 413, 422],
  }),
  deregister: contract({
    method: "post",
    path: "/api/worker/pool/deregister",
    summary: "Marks a worker offline; what it still holds may be claimed by others at once",
    access: "worker",
    body: DeregisterBody,
    answer: DeregisterAnswer,
    refusals: [413, 422],
  }),
  pools: contract({
    method: "get",
    path: "/api/worker/pools",
    summary: "The workers, in the order of their names",
    access: "worker",
    user: { permission: "view_operations" },
    query: PoolsQuery,
    answer: PoolsAnswer,
    refusals: [422],
  }),
} as const;

/** Pools of workers, each with a token of its own. */
export const POOL_ROUTES = {
  list: contract({
    method: "get",
    path: "/api/pools",
    summary: "The pools of workers, in the order of their names, also revoked ones",
    access: "operator",
    answer: WorkerPoolsAnswer,
  }),
  create: contract({
    method: "post",
    path: "/api/pools",
    summary: "Makes a pool of workers for the playbooks of some paths; the answer has its token, this once",
    access: "operator",
    body: CreatePoolBody,
    answer: PoolTokenAnswer,
    status: 201,
    audit: { action: "pool.create", resource: "pool" },
    refusals: [409, 413, 422],
  }),
  rotate: contract({
    method: "post",
    path: "/api/pools/:name/rotate",
    summary: "Gives a pool a new token; the old one is refused from then on",
    access: "operator",
    answer: PoolTokenAnswer,
    audit: { action: "pool.rotate", resource: "pool/:name" },
    refusals: [404],
  }),
  revoke: contract({
    method: "post",
    path: "/api/pools/:name/revoke",
    summary: "Refuses a pool's token from then on; its paths are the shared token's again",
    access: "operator",
    answer: WorkerPoolItem,
    audit: { action: "pool.revoke", resource: "pool/:name" },
    refusals: [404],
  }),
} as const;

/** Claims (Worker protocol). */
export const COMMAND_ROUTES = {
  claim: contract({
    method: "post",
    path: "/api/commands/claim",
    summary: "Claims commands for a worker, waiting for the first if asked to; none when there was none in time",
    access: "worker",
    body: ClaimBody,
    answer: ClaimAnswer,
    refusals: [413, 422],
  }),
  claimOne: contract({
    method: "post",
    path: "/api/commands/:command_id/claim",
    summary:
      "Claims one command; 409 `active_claim` (with Retry-After) while another worker holds it, or `already_terminal`",
    access: "worker",
    body: ClaimOneBody,
    answer: ClaimedCommandAnswer,
    refusals: [404, 409, 413, 422],
  }),
} as const;

/** Events of workers (interface specification, Event batches). */
export const EVENT_ROUTES = {
  batch: contract({
    method: "post",
    path: "/api/events/batch",
    summary:
      "Takes events of commands: all of them, or none. With `claim` the answer also carries the worker's next commands",
    access: "worker",
    body: BatchBody,
    bodyLimit: "batch",
    answer: BatchAnswer,
    status: 202,
    refusals: [409, 413, 422, 504],
  }),
  single: contract({
    method: "post",
    path: "/api/events",
    summary: "Takes one event of a command",
    access: "worker",
    body: SingleEventBody,
    bodyLimit: "batch",
    answer: SingleEventAnswer,
    refusals: [409, 413, 422, 504],
  }),
  status: contract({
    method: "get",
    path: "/api/events/batch/:request_id/status",
    summary: "How far a batch of events is",
    access: "worker",
    answer: BatchStatus,
    refusals: [404],
  }),
  stream: contract({
    method: "get",
    path: "/api/events/batch/:request_id/stream",
    summary:
      "Server-sent events: the batch's status as event `status`, again after each change, until it is completed or failed",
    access: "worker",
    contentType: "text/event-stream",
    refusals: [404, 429],
  }),
} as const;
