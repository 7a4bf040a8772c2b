import { Hono } from "hono";
import {
  AgentsAnswer,
  AgentsBody,
  CatalogAnswer,
  type CatalogItem,
  CatalogQuery,
  EntryAnswer,
  RegisterAnswer,
  RegisterBody,
  ResourceAnswer,
  ResourceQuery,
  ValidateAnswer,
  ValidateBody,
  VersionsAnswer,
} from "../../schema/api/catalog.ts";
import { isJsonObject, type JsonObject, own } from "../../schema/words/json.ts";
import { PageQuery, pageSize } from "../../schema/words/wire.ts";
import type { Catalog } from "../../services/catalog/catalog.ts";
import { contract } from "../http/contract.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { theEntry, thePath } from "../http/subject.ts";
import { jsonBody, pathId, queryOf } from "../http/validate.ts";

const LIST = contract({
  method: "get",
  path: "/api/catalog",
  summary: "The newest version of each path, in the order of paths",
  access: "worker",
  user: { action: "view", of: "list" },
  query: CatalogQuery,
  answer: CatalogAnswer,
  refusals: [422],
});

const RESOURCE = contract({
  method: "get",
  path: "/api/catalog/resource/:path{.+}",
  summary: "One version of a path with its document, the newest by default",
  access: "worker",
  user: { action: "view", of: thePath },
  query: ResourceQuery,
  answer: ResourceAnswer,
  refusals: [404, 422],
});

const VERSIONS = contract({
  method: "get",
  path: "/api/catalog/versions/:path{.+}",
  summary: "The versions of a path, newest first",
  access: "worker",
  user: { action: "view", of: thePath },
  query: PageQuery,
  answer: VersionsAnswer,
  refusals: [404, 422],
});

const ENTRY = contract({
  method: "get",
  path: "/api/catalog/entries/:catalog_id",
  summary: "One version by its id with the text as it was registered",
  access: "worker",
  user: { action: "view", of: theEntry },
  answer: EntryAnswer,
  refusals: [404],
});

const REGISTER = contract({
  method: "post",
  path: "/api/catalog/register",
  summary: "Registers a document as the newest version of its path",
  access: "operator",
  user: { action: "modify", of: "asked" },
  body: RegisterBody,
  answer: RegisterAnswer,
  refusals: [413, 422],
});

const VALIDATE = contract({
  method: "post",
  path: "/api/catalog/validate",
  summary: "What registering a document would say of it, with lines and columns; nothing is written",
  access: "worker",
  // It reads only the text, so every logged-in user may call it.
  user: "session",
  body: ValidateBody,
  answer: ValidateAnswer,
  refusals: [413, 422],
});

const AGENTS = contract({
  method: "post",
  path: "/api/catalog/agents/list",
  summary: "The newest version of each agent that terminals show, with its document",
  access: "worker",
  user: { action: "view", of: "list" },
  body: AgentsBody,
  bodyOptional: true,
  answer: AgentsAnswer,
  refusals: [422],
});

/** Contracts of {@link catalogRoutes}. */
export const CATALOG_CONTRACTS = [LIST, RESOURCE, VERSIONS, ENTRY, REGISTER, VALIDATE, AGENTS];

/** The catalog (interface specification, Catalog). */
export function catalogRoutes(catalog: Catalog) {
  return new Hono<RouteEnvironment>()
    .get(LIST.path, queryOf(LIST.query), async (c) => {
      const { limit, resource_type, ...query } = c.req.valid("query");
      const resourceType = resource_type === undefined ? {} : { resourceType: resource_type };
      const { items, nextCursor } = await catalog.list({
        ...query,
        ...resourceType,
        limit: pageSize(limit),
        visible: c.var.visible("view"),
      });
      return c.json({ resources: items.map(itemOf), next_cursor: nextCursor } satisfies CatalogAnswer);
    })
    .get(RESOURCE.path, queryOf(RESOURCE.query), async (c) => {
      const { version = "latest" } = c.req.valid("query");
      const entry = await catalog.find(c.req.param("path"), version === "latest" ? undefined : Number(version));
      const { payload, content } = entry;
      return c.json({ ...itemOf(entry), payload, content } satisfies ResourceAnswer);
    })
    .get(VERSIONS.path, queryOf(VERSIONS.query), async (c) => {
      const { limit, ...query } = c.req.valid("query");
      const { items, nextCursor } = await catalog.versions(c.req.param("path"), { ...query, limit: pageSize(limit) });
      return c.json({ versions: items.map(itemOf), next_cursor: nextCursor } satisfies VersionsAnswer);
    })
    .get(ENTRY.path, async (c) => {
      const entry = await catalog.entry(pathId(c.req.param("catalog_id"), "catalog entry"));
      const { catalogId, path, version, kind, content } = entry;
      return c.json({ catalog_id: catalogId, path, version, kind, content } satisfies EntryAnswer);
    })
    .post(REGISTER.path, jsonBody(REGISTER.body), async (c) => {
      const { content, resource_type, if_changed = false, strict = false } = c.req.valid("json");
      const expected = resource_type === undefined ? {} : { expectedKind: resource_type };
      const permit = (path: string) => c.var.permit("modify", path);
      const maySee = (path: string) =>
        c.var.permit("execute", path).then(
          () => true,
          () => false,
        );
      const asked = { content, ifChanged: if_changed, strict, permit, maySee, ...expected };
      const registered = await catalog.register(asked);
      const { path, kind, catalogId, version, unchanged, warnings } = registered;
      const answer = { status: "success", path, kind, catalog_id: catalogId, version, warnings } as const;
      return c.json((unchanged ? { ...answer, unchanged: true } : answer) satisfies RegisterAnswer);
    })
    .post(VALIDATE.path, jsonBody(VALIDATE.body), async (c) => {
      const { kind = null, path = null, messages } = await catalog.validate(c.req.valid("json").content);
      return c.json({ valid: path !== null, kind, path, messages } satisfies ValidateAnswer);
    })
    .post(AGENTS.path, jsonBody(AGENTS.body, AGENTS.bodyOptional), async (c) => {
      const { limit, ...body } = c.req.valid("json");
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
      return c.json({ entries, next_cursor: nextCursor } satisfies AgentsAnswer);
    });
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
function itemOf(entry: {
  path: string;
  kind: CatalogItem["kind"];
  version: number;
  catalogId: string;
  createdAt: Date;
  metadata: CatalogItem["metadata"];
}): CatalogItem {
  const { path, kind, version, catalogId, createdAt, metadata } = entry;
  return { path, kind, version, catalog_id: catalogId, created_at: createdAt.toISOString(), metadata };
}
