import type { operations } from "./schema.d.ts";

/** Short names for the API's answers. */

type Answer<Name extends keyof operations> = operations[Name] extends {
  responses: { 200: { content: { "application/json": infer Body } } };
}
  ? Body
  : never;

/** A row of the list of executions. */
export type ExecutionItem = Answer<"getApiExecutions">["executions"][number];
/** One execution with its steps and open commands. */
export type Execution = Answer<"getApiExecutionsExecutionId">;
/** A step of an execution: how far it is. */
export type Step = Execution["steps"][number];
/** An open command: its worker and since when. */
export type OpenCommand = NonNullable<Execution["commands"]>[number];
/** The soonest run of a task that failed and waits to be run again. */
export type NextRetry = NonNullable<Execution["next_retry"]>;
/** One event of the log. */
export type EventRecord = Answer<"getApiExecutionsExecutionIdEvents">["events"][number];
/** A row of the catalog. */
export type CatalogItem = Answer<"getApiCatalog">["resources"][number];
/** One version of a catalog entry with its text. */
export type Resource = Answer<"getApiCatalogResourcePath">;
/** Why nothing is running, and the state of each part. */
export type Overview = Answer<"getApiAdminOverview">;
/** What registering a text would say of it. */
export type Validation = Answer<"postApiCatalogValidate">;
/** A credential without its data. */
export type Credential = Answer<"getApiCredentials">["items"][number];
/** A worker with its capacity and heartbeat. */
export type Worker = Answer<"getApiWorkerPools">["items"][number];
/** What the doctor found, each with its remedy. */
export type Diagnosis = Answer<"getApiAdminDiagnosis">;
/** An agent or MCP server that may be called. */
export type Agent = Answer<"postApiCatalogAgentsList">["entries"][number];
/** A user of the installation. */
export type User = Answer<"getApiAuthUsers">["users"][number];
/** A role with what it permits. */
export type Role = Answer<"getApiAuthRoles">["roles"][number];
/** The current user: a user of the gateway, or the role of a token. */
export type Me = Answer<"getApiAuthMe">;
/** A session of a user. */
export type Session = Answer<"getApiAuthSessions">["sessions"][number];
/** A row of the audit log. */
export type AuditEntry = Answer<"getApiAuthAudit">["entries"][number];
/** What a task of a command was given. */
export type RenderedTask = Answer<"getApiExecutionsExecutionIdRendered">["tasks"][number];
