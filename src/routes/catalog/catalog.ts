import type { Context } from "hono";
import type { CatalogItem } from "../../schema/api/catalog.ts";
import { inputsOfDocument, schemaOfInputs } from "../../schema/inputs/declared-inputs.ts";
import { CATALOG_ROUTES } from "../../schema/routes/catalog.ts";
import { uncoveredBy } from "../../schema/rules/access-cover.ts";
import type { TriggerOf } from "../../schema/triggers/trigger.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type JsonObject, own } from "../../schema/words/json.ts";
import { pageSize } from "../../schema/words/wire.ts";
import { type Audit, audited } from "../../services/access/audit.ts";
import type { Catalog } from "../../services/catalog/catalog.ts";
import { callerOf, documentCaller } from "../http/audit-caller.ts";
import { checkPoolPath } from "../http/authenticate.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { type RouteHandler, serve } from "../http/serve.ts";
import { pathId } from "../http/validate.ts";
import { playbookOpenApi } from "./playbook-openapi.ts";

/** The catalog (interface specification, Catalog). */
export function catalogRoutes(catalog: Catalog, audit: Pick<Audit, "record">) {
  return serve(CATALOG_ROUTES, {
    list: async ({ query: { limit, resource_type, ...query }, json }, c) => {
      const resourceType = resource_type === undefined ? {} : { resourceType: resource_type };
      const { items, nextCursor } = await catalog.list({
        ...query,
        ...resourceType,
        limit: pageSize(limit),
        visible: c.var.visible("view"),
      });
      return json({ resources: items.map(itemOf), next_cursor: nextCursor });
    },
    resource: async ({ query: { version = "latest" }, params, json }, c) => {
      const entry = await catalog.find(params.path, version === "latest" ? undefined : Number(version));
      // Any playbook may name an MCP server, which is no code and holds no secret.
      if (entry.kind !== "mcp") checkPoolPath(c, entry.path, () => notOfPool(entry.path));
      const { payload, content } = entry;
      const declared = inputsOfDocument(payload);
      const schema = declared === undefined ? undefined : schemaOfInputs(declared.inputs, declared.defaults);
      return json({ ...itemOf(entry), payload, content, ...defined({ input_schema: schema }) });
    },
    versions: async ({ query: { limit, ...query }, params, json }) => {
      const { items, nextCursor } = await catalog.versions(params.path, { ...query, limit: pageSize(limit) });
      return json({ versions: items.map(itemOf), next_cursor: nextCursor });
    },
    openapi: playbookDocument(catalog),
    entry: async ({ params, json }, c) => {
      const entry = await catalog.entry(pathId(params.catalog_id, "catalog entry"));
      checkPoolPath(c, entry.path, () => notOfPool(`of catalog entry ${params.catalog_id}`));
      const { catalogId, path, version, kind, content } = entry;
      return json({ catalog_id: catalogId, path, version, kind, content });
    },
    register: async ({ body: { content, resource_type, if_changed = false, strict = false }, json }, c) => {
      const expected = resource_type === undefined ? {} : { expectedKind: resource_type };
      const permit = async (path: string, triggers: readonly TriggerOf[]) => {
        await c.var.permit("modify", path);
        await permitTriggers(c, path, triggers);
      };
      const maySee = (path: string) => Promise.resolve(c.var.may("execute", path));
      const caller = documentCaller(c, content);
      const by = c.var.user === undefined ? {} : { userId: String(c.var.user.userId) };
      const registration = { content, ifChanged: if_changed, strict, caller, permit, maySee, ...expected, ...by };
      const registered = await catalog.register(registration);
      const { path, kind, catalogId, version, unchanged, warnings } = registered;
      const answer = { status: "success", path, kind, catalog_id: catalogId, version, warnings } as const;
      return json(unchanged ? { ...answer, unchanged: true } : answer);
    },
    pause: steering("pause", catalog, audit),
    resume: steering("resume", catalog, audit),
    validate: async ({ body: { content }, json }, c) => {
      const caller = documentCaller(c, content);
      const { kind = null, path = null, messages } = await catalog.validate(content, caller);
      return json({ valid: path !== null, kind, path, messages });
    },
    agents: async ({ body: { limit, ...body }, json }, c) => {
      const { items, nextCursor } = await catalog.agents({
        ...body,
        limit: pageSize(limit),
        visible: c.var.visible("view"),
      });
      const entries = items.map(({ catalogId, path, version, payload }) => ({
        catalog_id: catalogId,
        path,
        version,
        payload: withVisibility(payload),
      }));
      return json({ entries, next_cursor: nextCursor });
    },
  });
}

function playbookDocument(catalog: Pick<Catalog, "find">): RouteHandler<typeof CATALOG_ROUTES.openapi> {
  return async ({ query: { version = "latest" }, params, json }, c) => {
    const wanted = version === "latest" ? undefined : version;
    const entry = await catalog.find(params.path, wanted === undefined ? undefined : Number(wanted));
    checkPoolPath(c, entry.path, () => notOfPool(entry.path));
    return json(playbookOpenApi(entry, wanted));
  };
}

/** Pauses a path or resumes it. */
function steering(
  name: "pause" | "resume",
  catalog: Pick<Catalog, "pause" | "resume">,
  audit: Pick<Audit, "record">,
): RouteHandler<typeof CATALOG_ROUTES.pause> & RouteHandler<typeof CATALOG_ROUTES.resume> {
  const route = CATALOG_ROUTES[name];
  return async ({ params: { path }, body: { reason }, json }, c) => {
    const caller = callerOf(c, route);
    const pause = { by: caller.actor ?? caller.actorKind, ...defined({ reason }) };
    const state = name === "pause" ? await catalog.pause(path, pause) : await catalog.resume(path);
    const detail = { ...defined({ reason }), is_changed: state.isChanged };
    await audit.record(audited(caller, route.audit.action, `playbook/${path}`, { detail }));
    return json({ path, paused: pauseOf(state) });
  };
}

/**
 * What a trigger does, its author must be allowed to do (control, rule 40): start the playbook, and see the executions that it watches. Throws
 * `FlowError` FORBIDDEN.
 */
async function permitTriggers(
  c: Context<RouteEnvironment>,
  document: string,
  triggers: readonly TriggerOf[],
): Promise<void> {
  for (const path of new Set(triggers.map(({ path }) => path))) await c.var.permit("execute", path);
  const { user } = c.var;
  if (user === undefined) return;
  for (const { trigger } of triggers) {
    if (trigger.execution === undefined) continue;
    const { path } = trigger.execution;
    const watched = { playbookPath: null, allowPattern: path, denyPattern: null, ...VIEW_ONLY };
    const outside = uncoveredBy(user.playbooks, [watched]);
    if (outside === undefined) continue;
    const example = outside.path === undefined ? "" : `, such as '${outside.path}'`;
    const message = `'${document}' was not registered: its trigger '${trigger.name}' watches '${path}', and you may not view all of it${example}`;
    throw new FlowError("FORBIDDEN", `${message}. Name what you may view`);
  }
}

const VIEW_ONLY = { canExecute: false, canView: true, canModify: false };

type Pause = Omit<Awaited<ReturnType<Catalog["pause"]>>, "isChanged">;

function pauseOf({ pausedAt, pausedBy, pauseReason }: Pause): NonNullable<CatalogItem["paused"]> | null {
  return pausedAt === null ? null : { since: pausedAt.toISOString(), by: pausedBy, reason: pauseReason };
}

/** The document with `metadata.terminal.visible`, whose default is true. */
function withVisibility(payload: JsonObject): JsonObject {
  const metadata = objectAt(payload, "metadata");
  const terminal = objectAt(metadata, "terminal");
  return { ...payload, metadata: { ...metadata, terminal: { ...terminal, visible: terminal["visible"] ?? true } } };
}

function objectAt(object: JsonObject, key: string): JsonObject {
  const value = own(object, key);
  return isJsonObject(value) ? value : {};
}

/** The wire shape of an entry without its document. */
function notOfPool(what: string): FlowError {
  return new FlowError("FORBIDDEN", `The playbook ${what} is not one of this worker's pool`, {
    detail: { reason: "pool" },
  });
}

function itemOf(
  entry: {
    path: string;
    kind: CatalogItem["kind"];
    version: number;
    catalogId: string;
    createdAt: Date;
    metadata: CatalogItem["metadata"];
  } & Partial<Pause>,
): CatalogItem {
  const {
    path,
    kind,
    version,
    catalogId,
    createdAt,
    metadata,
    pausedAt = null,
    pausedBy = null,
    pauseReason = null,
  } = entry;
  const paused = pauseOf({ pausedAt, pausedBy, pauseReason });
  const item = { path, kind, version, catalog_id: catalogId, created_at: createdAt.toISOString(), metadata };
  return paused === null ? item : { ...item, paused };
}
