import { CredentialName, type CredentialRecord } from "../../schema/api/credentials.ts";
import { CREDENTIAL_ROUTES } from "../../schema/routes/credentials.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { pageSize } from "../../schema/words/wire.ts";
import type { Credentials } from "../../services/credentials/credentials.ts";
import { callerOf } from "../http/audit-caller.ts";
import { claimedExecution } from "../http/claimed-execution.ts";
import { serve } from "../http/serve.ts";
import { check, invalid } from "../http/validate.ts";

/** Credentials (interface specification, Credentials). */
export function credentialRoutes(credentials: Credentials) {
  return serve(CREDENTIAL_ROUTES, {
    list: async ({ query: { limit, ...query }, json }) => {
      const { items, nextCursor } = await credentials.list({ ...query, limit: pageSize(limit) });
      return json({ items: items.map(recordOf), next_cursor: nextCursor });
    },
    read: async ({ query: { include_data, execution_id }, params, json }, c) => {
      const identifier = params.identifier;
      // Caches on the way must not keep it.
      c.header("cache-control", "no-store");
      if (include_data !== "true") return json(recordOf(await credentials.find(identifier)));
      // A user who may store a credential makes it available to playbooks; only workers and operators read its content.
      if (c.var.role === "user") throw new FlowError("FORBIDDEN", "The data of a credential is never shown to users");
      const executionId = claimedExecution(c, execution_id);
      const use = defined({ executionId });
      const { record, data } = await credentials.read(identifier, callerOf(c, CREDENTIAL_ROUTES.read), use);
      return json({ ...recordOf(record), data });
    },
    uses: async ({ query: { limit, cursor }, params, json }, c) => {
      const { items, hidden, nextCursor } = await credentials.users(params.identifier, {
        limit: pageSize(limit),
        ...defined({ cursor }),
        visible: c.var.visible("view"),
      });
      const answered = items.map(({ catalogId, places, ...entry }) => ({
        ...entry,
        catalog_id: catalogId,
        places: places.map(({ place, byDefault }) => ({ place, by_default: byDefault })),
      }));
      return json({ items: answered, hidden, next_cursor: nextCursor });
    },
    save: async ({ body, json }, c) => {
      const { record, created } = await credentials.save(body, callerOf(c, CREDENTIAL_ROUTES.save));
      return json(recordOf(record), created ? 201 : 200);
    },
    replace: async ({ body, params, json }, c) => {
      const name = check(CredentialName, params.identifier, "The name in the address");
      const { name: said = name, ...content } = body;
      if (said !== name) throw invalid("The body", [{ path: "name", message: `must be '${name}' as in the address` }]);
      const { record, created } = await credentials.save({ ...content, name }, callerOf(c, CREDENTIAL_ROUTES.replace));
      return json(recordOf(record), created ? 201 : 200);
    },
    playbooks: async ({ body, params, json }, c) => {
      const caller = callerOf(c, CREDENTIAL_ROUTES.playbooks);
      return json(recordOf(await credentials.setPlaybooks(params.identifier, body.playbooks, caller)));
    },
    remove: async ({ params, json }, c) => {
      const name = params.identifier;
      await credentials.remove(name, callerOf(c, CREDENTIAL_ROUTES.remove));
      return json({ status: "success" as const, name });
    },
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
    playbooks: row.playbooks,
    created_at: row.createdAt.toISOString(),
    updated_at: row.updatedAt.toISOString(),
  };
}
