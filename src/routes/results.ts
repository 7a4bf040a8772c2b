import { type Context, Hono } from "hono";
import { parseDuration } from "../platform/duration.ts";
import { ResolveQuery, SaveResultAnswer, SaveResultQuery } from "../schema/result-api.ts";
import { JsonValue } from "../schema/wire.ts";
import type { Results } from "../services/results.ts";
import { limitedBody } from "./body.ts";
import { contract } from "./contract.ts";
import type { RouteEnvironment } from "./environment.ts";
import { invalid, queryOf } from "./input.ts";

const SAVE = contract({
  method: "put",
  path: "/api/results",
  summary: "Keeps a payload under its reference for the present claim of a command; 409 for a claim that was lost",
  access: "worker",
  query: SaveResultQuery,
  body: JsonValue,
  bodyLimit: "result",
  answer: SaveResultAnswer,
  refusals: [409, 413, 422, 507],
});

const RESOLVE = contract({
  method: "get",
  path: "/results/resolve",
  summary: "The payload behind a reference, its checksum verified",
  access: "worker",
  query: ResolveQuery,
  answer: JsonValue,
  refusals: [404, 422],
});

/** The same where a prefix of `/api` alone is let through. */
const RESOLVE_API = contract({ ...RESOLVE, path: "/api/results/resolve" });

/** Contracts of {@link resultRoutes}. */
export const RESULT_CONTRACTS = [SAVE, RESOLVE, RESOLVE_API];

/** Stored results (interface specification, Results and lifecycle). `bytesMax` bounds what is kept. */
export function resultRoutes(results: Pick<Results, "upload" | "read">, bytesMax: number) {
  return new Hono<RouteEnvironment>()
    .put(SAVE.path, queryOf(SAVE.query), async (c) => {
      const { ref, command_id, attempt, scope, ttl } = c.req.valid("query");
      const ttlMs = ttl === undefined ? undefined : parseDuration(ttl);
      if (ttl !== undefined && ttlMs === undefined) {
        throw invalid("The query", [{ path: "ttl", message: "must be a time such as 90s, 15m, 1h or 30d" }]);
      }
      const saved = await results.upload({
        ref,
        claim: { commandId: command_id, attempt: Number(attempt) },
        body: limitedBody(c.req.raw, bytesMax),
        ...(scope !== undefined && { scope }),
        ...(ttlMs !== undefined && { ttlMs }),
      });
      const { store, bytes, sha256, expiresAt } = saved;
      return c.json({
        status: "ok",
        ref,
        store,
        bytes,
        sha256,
        expires_at: expiresAt.toISOString(),
      } satisfies SaveResultAnswer);
    })
    .get(RESOLVE.path, queryOf(RESOLVE.query), (c) => resolve(c, results, c.req.valid("query").ref))
    .get(RESOLVE_API.path, queryOf(RESOLVE_API.query), (c) => resolve(c, results, c.req.valid("query").ref));
}

/** The bytes as they were stored: nothing is parsed, so nothing is written anew in another way. */
async function resolve(c: Context, results: Pick<Results, "read">, ref: string): Promise<Response> {
  const { payload, contentType } = await results.read(ref);
  return c.body(new Uint8Array(payload), 200, { "content-type": contentType });
}
