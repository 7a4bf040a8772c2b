import type { Program } from "../../engine/program/program.ts";
import { unknownInputsInPieces } from "../../engine/program/unknown-inputs.ts";
import { plainPath } from "../../language/document/catalog-path.ts";
import { childCalls } from "../../language/load/child-calls.ts";
import { batchLookup } from "../../platform/concurrency/coalesce.ts";
import type { Database } from "../../repositories/database/database.ts";
import { findExecution } from "../../repositories/executions/execution-list.ts";
import {
  type Executable,
  findExecutableById,
  findExecutables,
  findExecutableVersion,
  findParent,
  type ParentRow,
} from "../../repositories/orchestration/find-startable.ts";
import type { ExecutionStateName } from "../../schema/api/executions.ts";
import { callRefusal, decideUserAccess } from "../../schema/rules/access-rules.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { ParentRef } from "../../schema/words/event.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { Access } from "../access/access.ts";
import { type Audit, audited, inAuditLog } from "../access/audit.ts";
import { missingChildren } from "../catalog/missing-children.ts";
import { inPieces } from "../in-pieces.ts";
import type { Orchestrator, StartLog } from "../orchestration/orchestrator.ts";

/** Nesting depth of sub-playbooks above which a call is refused: a playbook that calls itself must end. */
const CHILD_DEPTH_MAX = 64;

/** What to run: a path, or a catalog entry by its id. */
export interface ExecutionRequest {
  path?: string;
  catalogId?: string;
  /** Version of the path; default: the newest. */
  version?: number;
  /** The required kind of the entry. An agent runs only if the caller asks for an agent. */
  resourceKind?: "playbook" | "agent";
  input: JsonObject;
  /** Length of the request, in bytes. Default 0. */
  bytes?: number;
  target?: string;
  /** The step whose result the caller will request. */
  returnStep?: string;
  parent?: ParentRef;
  /** W3C `traceparent` of the caller. */
  traceparent?: string;
  idempotency?: { caller: string; key: string; bodySha256: string };
  /** Permission check of a path, before any lookup or start; refuses by throwing. Default: everything is permitted. */
  permit?(path: string): Promise<void>;
  /** The same as an answer, for what only a message depends on. Default: everything may be seen. */
  may?(path: string): boolean;
  log?: StartLog;
  /** The user in whose name it runs; its children run in the same name. */
  startedBy?: number;
}

/** An execution that was started, now or (`duplicate`) by an earlier call with the same key. */
export interface Started extends Omit<Executable, "kind"> {
  executionId: string;
  status: ExecutionStateName;
  duplicate: boolean;
  /** Warnings about its inputs, a sentence each. */
  warnings: string[];
}

/**
 * Starts executions. Rejects with `FlowError` NOT_FOUND (`Executable catalog entry not found`, no such parent), INVALID_INPUT,
 * CONFLICT for a parent that has ended, SYSTEM_PLAYBOOK for one that its parent may not call, FORBIDDEN by `permit` or for a child that its parent's user may not run, and with the
 * errors of {@link Orchestrator.start}.
 */
export function startExecutions(deps: {
  database: Database;
  orchestrator: Pick<Orchestrator, "start">;
  /** Cancels a child whose parent was cancelled while it started. */
  cancel(executionId: string, reason: string): Promise<unknown>;
  access: Pick<Access, "user">;
  audit: Pick<Audit, "refused">;
  /** The compiled playbook of a catalog entry. */
  programs(catalogId: string): Promise<{ program: Program }>;
}): (request: ExecutionRequest) => Promise<Started> {
  const { database, orchestrator } = deps;
  const newestOf = batchLookup(
    async (paths: readonly string[]) =>
      new Map((await findExecutables(database, paths)).map((entry) => [entry.path, entry])),
  );
  return async (given) => {
    const request = given.path === undefined ? given : { ...given, path: plainPath(given.path) };
    const { parent, input, bytes, target, returnStep, traceparent, idempotency } = request;
    // Before the lookup: a refused caller must not learn whether it exists.
    if (request.path !== undefined) await request.permit?.(request.path);
    const found = await findEntry(database, newestOf, request);
    if (found !== undefined && found.path !== request.path) await request.permit?.(found.path);
    const entry = checkedEntry(found, request);
    const caller = parent === undefined ? undefined : await openParent(database, parent.execution_id);
    if (caller !== undefined) checkSystemChild(deps, caller.path, entry.path);
    const startedBy = caller?.startedBy ?? request.startedBy;
    if (parent !== undefined && typeof caller?.startedBy === "number") {
      await checkStarter(deps, parent.execution_id, caller.startedBy, entry.path);
    }
    const { kind: _kind, ...what } = entry;
    const { program } = await deps.programs(entry.catalogId);
    // A run with a target may stop before the call, and then does not need the called playbook.
    if (target === undefined) await checkChildren(program, newestOf, request);
    const warnings = parent === undefined ? await inPieces(unknownInputsInPieces(program, input)) : [];
    const started = await orchestrator.start({
      entry: what,
      input,
      ...(parent !== undefined && caller !== undefined && { parent: { ...parent, ...rootOf(parent, caller) } }),
      ...(caller !== undefined && { rootExecutionId: caller.rootExecutionId }),
      ...defined({ startedBy, target, returnStep, traceparent, idempotency, bytes, log: request.log }),
    });
    if (parent !== undefined) await endWithParent(deps, parent.execution_id, started.executionId);
    return {
      ...what,
      ...started,
      warnings,
      ...(started.duplicate && (await earlierEntry(database, started.executionId))),
    };
  };
}

/** System playbooks act with the rights of the service: no other playbook may call one, by whichever user it was started. */
function checkSystemChild({ audit }: { audit: Pick<Audit, "refused"> }, parentPath: string, path: string): void {
  const why = callRefusal(parentPath, path);
  if (why === undefined) return;
  const caller = { actorKind: "worker", actor: "worker", rule: why } as const;
  const detail = { caller: parentPath };
  audit.refused(audited(caller, "playbook.execute", `playbook/${path}`, { result: "deny", detail }));
  throw new FlowError("SYSTEM_PLAYBOOK", `${why}. Start it by itself`, { detail: { path } });
}

/** Throws if every run would call a playbook that does not exist. */
async function checkChildren({ playbook }: Program, newestOf: NewestOf, request: ExecutionRequest): Promise<void> {
  const registered = async (paths: readonly string[]) => {
    const found = await Promise.all(paths.map((path) => newestOf(path)));
    return new Set(paths.filter((_, index) => found[index] !== undefined));
  };
  const maySee = (path: string) => Promise.resolve(request.may?.(path) ?? true);
  const missing = (await missingChildren(playbook.path, childCalls(playbook), { registered, maySee })).find(
    ({ isCertain }) => isCertain,
  );
  if (missing === undefined) return;
  const { path, step, why } = missing;
  const message = `'${playbook.path}' was not started: '${path}', which its step '${step}' calls, ${why}`;
  throw new FlowError("NOT_FOUND", `${message}. Register it, or correct the path`);
}

/** The top of the tree; left out if the parent itself is the top. */
function rootOf(parent: ParentRef, { rootExecutionId, rootCatalogId }: ParentRow): Partial<ParentRef> {
  const isTop = rootExecutionId === parent.execution_id;
  return { ...(!isTop && { root_execution_id: rootExecutionId }), root_catalog_id: rootCatalogId };
}

type NewestOf = (path: string) => Promise<Executable | undefined>;

async function findEntry(
  database: Database,
  newestOf: NewestOf,
  { path, catalogId, version }: ExecutionRequest,
): Promise<Executable | undefined> {
  if (catalogId !== undefined) {
    const entry = await findExecutableById(database, catalogId);
    const isOther = (path ?? entry?.path) !== entry?.path || (version ?? entry?.version) !== entry?.version;
    return isOther ? undefined : entry;
  }
  if (path === undefined) return undefined;
  return version === undefined ? await newestOf(path) : await findExecutableVersion(database, path, version);
}

function checkedEntry(entry: Executable | undefined, { resourceKind }: ExecutionRequest): Executable {
  if (entry?.kind === "agent" && resourceKind === undefined) {
    const hint = "Send 'resource_kind': 'agent' to run it";
    throw new FlowError("INVALID_INPUT", `'${entry.path}' is an agent. ${hint}`);
  }
  const isMeant = resourceKind === undefined ? entry?.kind === "playbook" : entry?.kind === resourceKind;
  if (entry !== undefined && isMeant) return entry;
  // The exact wording of the specification (Errors).
  throw new FlowError("NOT_FOUND", "Executable catalog entry not found");
}

async function openParent(database: Database, executionId: string): Promise<ParentRow> {
  const parent = await findParent(database, executionId, CHILD_DEPTH_MAX + 1);
  if (parent === undefined) {
    throw new FlowError("NOT_FOUND", `Execution ${executionId}, given as the caller, does not exist`);
  }
  if (isEnded(parent.status)) {
    const what = `Execution ${executionId} has ended (${parent.status})`;
    throw new FlowError("CONFLICT", `${what} and can call no further executions. Drop the work that made this call`);
  }
  if (parent.depth > CHILD_DEPTH_MAX) {
    const message = `Playbooks call each other more than ${CHILD_DEPTH_MAX} deep; does one call itself?`;
    throw new FlowError("INVALID_INPUT", message);
  }
  return parent;
}

/** The cancellation of a parent looks for children once. A child that started at that moment is ended here. */
async function endWithParent(
  { database, cancel }: Parameters<typeof startExecutions>[0],
  parentId: string,
  executionId: string,
): Promise<void> {
  const parent = await findExecution(database, parentId);
  if (parent?.status === "CANCELLED") await cancel(executionId, "The caller was cancelled");
}

async function earlierEntry(database: Database, executionId: string): Promise<Partial<Started>> {
  const row = await findExecution(database, executionId);
  return row === undefined
    ? {}
    : { catalogId: row.catalogId, path: row.path, version: row.version, status: row.status };
}

function isEnded(status: ExecutionStateName): boolean {
  return status === "COMPLETED" || status === "FAILED" || status === "CANCELLED";
}

/**
 * A child runs in the name of the user who started its parent, with that user's current permissions: otherwise every author of
 * a playbook could run any other playbook by calling it. Rejects with `FlowError` FORBIDDEN, which is recorded in the audit
 * log.
 */
async function checkStarter(
  { access, audit }: { access: Pick<Access, "user">; audit: Pick<Audit, "refused"> },
  parentExecutionId: string,
  userId: number,
  path: string,
): Promise<void> {
  const user = await access.user({ userId });
  const { allowed, rule } =
    user === undefined ? { allowed: false, rule: "the user is not active" } : decideUserAccess(user, "execute", path);
  if (allowed) return;
  const who = user?.email ?? `user ${userId}`;
  const caller = { actorKind: "user", actor: who, userId: String(userId), rule } as const;
  const detail = { parent_execution_id: parentExecutionId };
  audit.refused(audited(caller, "playbook.execute", `playbook/${path}`, { result: "deny", detail }));
  const message = `Execution ${parentExecutionId} runs in the name of ${who}, who may not execute ${path}: ${rule}`;
  throw inAuditLog(new FlowError("FORBIDDEN", message, { detail: { path } }));
}
