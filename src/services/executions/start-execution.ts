import type { Program } from "../../engine/program/program.ts";
import { unknownInputsInPieces } from "../../engine/program/unknown-inputs.ts";
import type { ExecutionState } from "../../engine/state/state.ts";
import { plainPath } from "../../language/document/catalog-path.ts";
import { childCalls } from "../../language/load/child-calls.ts";
import { batchLookup } from "../../platform/concurrency/coalesce.ts";
import type { StartedFire } from "../../ports/execution-store.ts";
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
import { findStartByKey } from "../../repositories/orchestration/load-execution.ts";
import { callRefusal, decideUserAccess } from "../../schema/rules/access-rules.ts";
import type { ExecutionStateName } from "../../schema/rules/execution-filter.ts";
import type { Origin } from "../../schema/rules/origin.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { ParentRef, Steered } from "../../schema/words/event.ts";
import { type JsonObject, own } from "../../schema/words/json.ts";
import type { Access } from "../access/access.ts";
import { type Audit, audited, inAuditLog } from "../access/audit.ts";
import { missingChildren } from "../catalog/missing-children.ts";
import { inPieces } from "../in-pieces.ts";
import { NotNewest } from "../orchestration/jobs.ts";
import type { Orchestrator, RerunInput, StartKey, StartLog } from "../orchestration/orchestrator.ts";

/** Paths of which the newest version is remembered: some 0.3 MB. */
const REMEMBERED_MAX = 1_000;

/**
 * The newest version of paths as this server has seen it last, so that a start need not look it up by a statement. Another server may
 * have registered a newer one since: the statement that writes the start checks that, and a start that it does not write is decided
 * again. So who registers at one server and starts at another gets the new version, without a notice that could be late.
 */
function createNewestVersions() {
  const kept = new Map<string, Executable>();
  const set = (path: string, entry: Executable | undefined) => {
    kept.delete(path);
    if (entry !== undefined) kept.set(path, entry);
    const [oldest] = kept.keys();
    if (kept.size > REMEMBERED_MAX && oldest !== undefined) kept.delete(oldest);
  };
  return {
    get(path: string): Executable | undefined {
      const found = kept.get(path);
      if (found !== undefined) set(path, found);
      return found;
    },
    set,
  };
}

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
  idempotency?: StartKey;
  /** The queued fire of a trigger that it is the outcome of, or the one that is written with it. */
  fireId?: string;
  newFire?: StartedFire;
  /** Permission check of a path, before any lookup or start; refuses by throwing. Default: everything is permitted. */
  permit?(path: string): Promise<void>;
  /** The same as an answer, for what only a message depends on. Default: everything may be seen. */
  may?(path: string): boolean;
  log?: StartLog;
  /** The user in whose name it runs; its children run in the same name. */
  startedBy?: number;
  /** What started it. Default: its parent, or else that user. */
  origin?: Origin;
  /** Words of people, by which lists are filtered. */
  labels?: Readonly<Record<string, string>>;
  /** It repeats another execution. */
  rerun?: RerunInput;
}

/** An execution that was started, now or (`duplicate`) by an earlier call with the same key. */
export interface Started extends Pick<Executable, "catalogId" | "path" | "version"> {
  executionId: string;
  status: ExecutionStateName;
  duplicate: boolean;
  /** Warnings about its inputs, a sentence each. */
  warnings: string[];
}

interface StartDeps {
  database: Database;
  orchestrator: Pick<Orchestrator, "start">;
  /** Cancels a child whose parent was cancelled while it started. */
  cancel(executionId: string, reason: string): Promise<unknown>;
  /** The pause of a parent whose newest event this is; undefined if it has been resumed. */
  pauseOf(executionId: string, lastEventId: number): Promise<ExecutionState["paused"]>;
  /** Pauses a child whose parent was paused with all its children while it started. */
  pause(executionId: string, pause: Steered): Promise<unknown>;
  access: Pick<Access, "user">;
  audit: Pick<Audit, "refused">;
  /** The compiled playbook of a catalog entry. */
  programs(catalogId: string): Promise<{ program: Program }>;
}

/**
 * Starts executions. Rejects with `FlowError` NOT_FOUND (`Executable catalog entry not found`, no such parent), INVALID_INPUT,
 * CONFLICT for a parent that has ended, playbook_paused, SYSTEM_PLAYBOOK for one that its parent may not call, FORBIDDEN by `permit` or for a child that its parent's user may not run, and with the
 * errors of {@link Orchestrator.start}.
 */
export function startExecutions(deps: StartDeps): (request: ExecutionRequest) => Promise<Started> {
  const { database } = deps;
  const newestOf = batchLookup(
    async (paths: readonly string[]) =>
      new Map((await findExecutables(database, paths)).map((entry) => [entry.path, entry])),
  );
  const newest = createNewestVersions();
  const parts = { deps, newestOf };
  const lookUp = async (request: ExecutionRequest) => {
    const found = await findEntry(database, newestOf, request);
    // The end of a pause is not told: one that is paused is looked up again.
    if (isNewest(request)) newest.set(request.path, found?.pausedAt == null ? found : undefined);
    if (found !== undefined && found.path !== request.path) await request.permit?.(found.path);
    return found;
  };
  return async (given) => {
    const request = given.path === undefined ? given : { ...given, path: plainPath(given.path) };
    // Before the lookup: a refused caller must not learn whether it exists.
    if (request.path !== undefined) await request.permit?.(request.path);
    const remembered = isNewest(request) ? newest.get(request.path) : undefined;
    const begun =
      remembered === undefined
        ? await begin(parts, request, await lookUp(request), false)
        : await begin(parts, request, remembered, true).catch(async (error: unknown) => {
            if (!mayBeOutdated(error)) throw error;
            const current = await lookUp(request);
            if (!(error instanceof NotNewest) && current?.catalogId === remembered.catalogId) throw error;
            return await begin(parts, request, current, false);
          });
    const { executionId, duplicate } = begun;
    if (request.parent !== undefined) await followParent(deps, request.parent.execution_id, executionId);
    return { ...begun, ...(duplicate && (await earlierEntry(database, executionId))) };
  };
}

/** Errors that another version of the playbook need not have. Nothing was written. */
function mayBeOutdated(error: unknown): boolean {
  return error instanceof NotNewest || (error instanceof FlowError && OF_VERSIONS.has(error.code));
}

const OF_VERSIONS: ReadonlySet<string> = new Set(["NOT_FOUND", "INVALID_INPUT", "INVALID_PLAYBOOK"]);

/** Checks and starts. `mustBeNewest`: `found` comes from memory. */
async function begin(
  { deps, newestOf }: { deps: StartDeps; newestOf: NewestOf },
  request: ExecutionRequest,
  found: Executable | undefined,
  mustBeNewest: boolean,
): Promise<Started> {
  const { parent, input, bytes, target, returnStep, traceparent, idempotency, origin, labels, rerun } = request;
  const { fireId, newFire } = request;
  const entry = checkedEntry(found, request);
  const caller = parent === undefined ? undefined : await openParent(deps.database, parent.execution_id);
  if (caller !== undefined) checkSystemChild(deps, caller.path, entry.path);
  const taken = parent === undefined ? undefined : await takenOver(deps.database, entry, parent, caller);
  if (taken !== undefined) return taken;
  const startedBy = caller?.startedBy ?? request.startedBy;
  if (parent !== undefined && typeof caller?.startedBy === "number") {
    await checkStarter(deps, parent.execution_id, caller.startedBy, entry.path);
  }
  await checkPause(deps.database, entry, request);
  const { catalogId, path, version } = entry;
  const what = { catalogId, path, version };
  const { program } = await deps.programs(entry.catalogId);
  // A run with a target may stop before the call, and then does not need the called playbook.
  if (target === undefined) await checkChildren(program, newestOf, request);
  const warnings = parent === undefined ? await inPieces(unknownInputsInPieces(program, input)) : [];
  const started = await deps.orchestrator.start({
    entry: what,
    mustBeNewest,
    input,
    ...(parent !== undefined && caller !== undefined && { parent: { ...parent, ...rootOf(parent, caller) } }),
    ...(caller !== undefined && { rootExecutionId: caller.rootExecutionId }),
    ...(caller?.sealedUnder != null && { sealedUnder: caller.sealedUnder }),
    ...defined({
      startedBy,
      target,
      returnStep,
      traceparent,
      idempotency,
      fireId,
      newFire,
      bytes,
      origin,
      labels,
      rerun,
      log: request.log,
    }),
  });
  return { ...what, ...started, warnings };
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

/** The completed execution whose result a rerun takes in place of this call, if it names one. */
async function takenOver(
  database: Database,
  { path }: Executable,
  { step = "", iter }: ParentRef,
  caller: ParentRow | undefined,
): Promise<Started | undefined> {
  const named = caller?.reuseChildren;
  if (named == null) return undefined;
  // `index` may be what the author calls the item.
  const index = iter === undefined ? undefined : (own(iter, "_index") ?? own(iter, "index"));
  const id = own(named, typeof index === "number" ? `${step}[${index}]` : step);
  if (typeof id !== "string") return undefined;
  const row = await findExecution(database, id);
  if (row?.path !== path || row.status !== "COMPLETED") {
    const why = row === undefined ? "has been deleted" : `is ${row.status}, of '${row.path}'`;
    throw new FlowError(
      "CONFLICT",
      `Step '${step}' was to take the result of execution ${id} of '${path}', which ${why}`,
    );
  }
  const { catalogId, version, status } = row;
  return { ...{ catalogId, path, version, status, executionId: id }, duplicate: true, warnings: [] };
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

function isNewest(request: ExecutionRequest): request is ExecutionRequest & { path: string } {
  return request.path !== undefined && request.catalogId === undefined && request.version === undefined;
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

/** Throws if the playbook is paused; a start that is repeated under its key is answered all the same. */
async function checkPause(
  database: Database,
  { path, pausedAt, pausedBy, pauseReason }: Executable,
  { idempotency }: ExecutionRequest,
): Promise<void> {
  if (pausedAt === null) return;
  if (idempotency !== undefined && (await findStartByKey(database, idempotency.caller, idempotency.key))) return;
  const why = pauseReason === null ? "" : `: ${pauseReason}`;
  const message = `'${path}' was not started: ${pausedBy ?? "someone"} paused it at ${pausedAt.toISOString()}${why}`;
  throw new FlowError("playbook_paused", `${message}. Resume it with 'flow catalog resume ${path}', or on its page`, {
    detail: { path, since: pausedAt.toISOString(), by: pausedBy, reason: pauseReason },
  });
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

/** The cancellation and the pause of a parent look for children once. A child that started since is ended or paused here. */
async function followParent(deps: StartDeps, parentId: string, executionId: string): Promise<void> {
  const parent = await findExecution(deps.database, parentId);
  if (parent?.status === "CANCELLED") await deps.cancel(executionId, "The caller was cancelled");
  if (parent?.status !== "PAUSED") return;
  const pause = await deps.pauseOf(parentId, parent.lastEventId);
  if (pause?.cascade === true) await deps.pause(executionId, pause);
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
