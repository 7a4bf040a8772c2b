import type { Answer } from "./client.ts";

/** Short names for the API's answers. */

/** A row of the list of executions. */
export type ExecutionItem = Answer<"GET /api/executions">["executions"][number];
/** One execution with its steps and open commands. */
export type Execution = Answer<"GET /api/executions/:execution_id">;
/** An execution as it was after one of its events. */
export type ExecutionState = Answer<"GET /api/executions/:execution_id/state">;
/** A step of an execution: how far it is. */
export type Step = Execution["steps"][number];
/** An open command: its worker and since when. */
export type OpenCommand = NonNullable<Execution["commands"]>[number];
/** Something that an execution waits for by itself. */
export type WaitingFor = NonNullable<Execution["waiting_for"]>[number];
/** What a rerun would do, or did. */
export type Rerun = Answer<"POST /api/executions/:execution_id/rerun">;
/** One event of the log. */
export type EventRecord = Answer<"GET /api/executions/:execution_id/events">["events"][number];
/** A row of the catalog. */
export type CatalogItem = Answer<"GET /api/catalog">["resources"][number];
/** One version of a catalog entry with its text. */
export type Resource = Answer<"GET /api/catalog/resource/:path{.+}">;
/** Why nothing is running, and the state of each part. */
export type Overview = Answer<"GET /api/admin/overview">;
/** What registering a text would say of it. */
export type Validation = Answer<"POST /api/catalog/validate">;
/** A credential without its data. */
export type Credential = Answer<"GET /api/credentials">["items"][number];
/** A worker with its capacity and heartbeat. */
export type Worker = Answer<"GET /api/worker/pools">["items"][number];
/** What the doctor found, each with its remedy. */
export type Diagnosis = Answer<"GET /api/admin/diagnosis">;
/** An agent or MCP server that may be called. */
export type Agent = Answer<"POST /api/catalog/agents/list">["entries"][number];
/** A user of the installation. */
export type User = Answer<"GET /api/auth/users">["users"][number];
/** A role with what it permits. */
export type Role = Answer<"GET /api/auth/roles">["roles"][number];
/** The current user: a user of the gateway, or the role of a token. */
export type Me = Answer<"GET /api/auth/me">;
/** A session of a user. */
export type Session = Answer<"GET /api/auth/sessions">["sessions"][number];
/** A row of the audit log. */
export type AuditEntry = Answer<"GET /api/auth/audit">["entries"][number];
/** What a task of a command was given. */
export type RenderedTask = Answer<"GET /api/executions/:execution_id/rendered">["tasks"][number];
