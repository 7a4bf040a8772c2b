import { Hono } from "hono";
import {
  CredentialAnswer,
  CredentialBody,
  CredentialName,
  CredentialQuery,
  CredentialRecord,
  CredentialsAnswer,
  CredentialsQuery,
  CredentialUsesAnswer,
  CredentialUsesQuery,
  DeletedCredential,
  ReplaceCredentialBody,
} from "../../schema/api/credentials.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { pageSize } from "../../schema/words/wire.ts";
import type { Credentials } from "../../services/credentials/credentials.ts";
import { callerOf } from "../http/audit-caller.ts";
import { contract } from "../http/contract.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { check, invalid, jsonBody, queryOf } from "../http/validate.ts";

const LIST = contract({
  method: "get",
  path: "/api/credentials",
  summary: "Credentials in the order of their names, never their data",
  access: "worker",
  user: { permission: "manage_credentials" },
  query: CredentialsQuery,
  answer: CredentialsAnswer,
  refusals: [422],
});

const READ = contract({
  method: "get",
  path: "/api/credentials/:identifier",
  summary: "One credential by its id or name; with `include_data=true` decrypted, which is audited",
  access: "worker",
  user: { permission: "manage_credentials" },
  query: CredentialQuery,
  answer: CredentialAnswer,
  audit: { action: "credential.read", resource: "credential/:identifier" },
  refusals: [404, 422],
});

const USES = contract({
  method: "get",
  path: "/api/credentials/:identifier/uses",
  summary: "What names a credential: newest versions in the catalog, with the places in their documents",
  access: "worker",
  user: { permission: "manage_credentials" },
  query: CredentialUsesQuery,
  answer: CredentialUsesAnswer,
  refusals: [422],
});

const SAVE = contract({
  method: "post",
  path: "/api/credentials",
  summary:
    "Creates a credential, or replaces the one of that name; 400 with every message when its data violate a schema",
  access: "operator",
  user: { permission: "manage_credentials" },
  body: CredentialBody,
  answer: CredentialRecord,
  creates: true,
  audit: { action: "credential.write", resource: "credential" },
  refusals: [400, 413, 422],
});

const REPLACE = contract({
  method: "put",
  path: "/api/credentials/:identifier",
  summary: "The same, by the name in the address",
  access: "operator",
  user: { permission: "manage_credentials" },
  body: ReplaceCredentialBody,
  answer: CredentialRecord,
  creates: true,
  audit: { action: "credential.write", resource: "credential/:identifier" },
  refusals: [400, 413, 422],
});

const REMOVE = contract({
  method: "delete",
  path: "/api/credentials/:identifier",
  summary: "Deletes the credential of a name; what runs with it keeps it to the end of its task",
  access: "operator",
  user: { permission: "manage_credentials" },
  answer: DeletedCredential,
  audit: { action: "credential.delete", resource: "credential/:identifier" },
  refusals: [404],
});

/** Contracts of {@link credentialRoutes}. */
export const CREDENTIAL_CONTRACTS = [LIST, READ, USES, SAVE, REPLACE, REMOVE];

/** Credentials (interface specification, Credentials). */
export function credentialRoutes(credentials: Credentials) {
  return new Hono<RouteEnvironment>()
    .get(LIST.path, queryOf(LIST.query), async (c) => {
      const { limit, ...query } = c.req.valid("query");
      const { items, nextCursor } = await credentials.list({ ...query, limit: pageSize(limit) });
      return c.json({ items: items.map(recordOf), next_cursor: nextCursor } satisfies CredentialsAnswer);
    })
    .get(READ.path, queryOf(READ.query), async (c) => {
      const identifier = c.req.param("identifier");
      // No cache on the way may keep it, and none has a use for the record alone.
      c.header("cache-control", "no-store");
      const { include_data, execution_id } = c.req.valid("query");
      if (include_data !== "true") return c.json(recordOf(await credentials.find(identifier)));
      // A user who may store a credential gives it to playbooks; only workers and operators read its content.
      if (c.var.role === "user") throw new FlowError("FORBIDDEN", "No user is shown the data of a credential");
      const { record, data } = await credentials.read(identifier, callerOf(c, READ), {
        ...(execution_id !== undefined && { executionId: execution_id }),
      });
      return c.json({ ...recordOf(record), data } satisfies CredentialAnswer);
    })
    .get(USES.path, queryOf(USES.query), async (c) => {
      const { limit, cursor } = c.req.valid("query");
      const { items, hidden, nextCursor } = await credentials.users(c.req.param("identifier"), {
        limit: pageSize(limit),
        ...(cursor !== undefined && { cursor }),
        visible: c.var.visible("view"),
      });
      const answered = items.map(({ catalogId, places, ...entry }) => ({
        ...entry,
        catalog_id: catalogId,
        places: places.map(({ place, byDefault }) => ({ place, by_default: byDefault })),
      }));
      return c.json({ items: answered, hidden, next_cursor: nextCursor } satisfies CredentialUsesAnswer);
    })
    .post(SAVE.path, jsonBody(SAVE.body), async (c) => {
      const { record, created } = await credentials.save(c.req.valid("json"), callerOf(c, SAVE));
      return c.json(recordOf(record), created ? 201 : 200);
    })
    .put(REPLACE.path, jsonBody(REPLACE.body), async (c) => {
      const name = check(CredentialName, c.req.param("identifier"), "The name in the address");
      const { name: said = name, ...content } = c.req.valid("json");
      if (said !== name) throw invalid("The body", [{ path: "name", message: `must be '${name}' as in the address` }]);
      const { record, created } = await credentials.save({ ...content, name }, callerOf(c, REPLACE));
      return c.json(recordOf(record), created ? 201 : 200);
    })
    .delete(REMOVE.path, async (c) => {
      const name = c.req.param("identifier");
      await credentials.remove(name, callerOf(c, REMOVE));
      return c.json({ status: "success" as const, name });
    });
}

function recordOf(row: Awaited<ReturnType<Credentials["find"]>>): CredentialRecord {
  return {
    id: row.id,
    name: row.name,
    type: row.type,
    description: row.description,
    tags: row.tags,
    schema: row.schema,
    meta: row.meta,
    created_at: row.createdAt.toISOString(),
    updated_at: row.updatedAt.toISOString(),
  };
}
