import { Hono } from "hono";
import { ROTATE_DEFAULT, RotateAnswer, RotateBody } from "../../schema/api/secrets.ts";
import type { rotateSecrets } from "../../services/credentials/rotate-secrets.ts";
import { callerOf } from "../http/audit-caller.ts";
import { contract } from "../http/contract.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { jsonBody } from "../http/validate.ts";

const ROTATE = contract({
  method: "post",
  path: "/api/admin/secrets/rotate",
  summary: "Encrypts with the current key some of what another key has encrypted, while all of it is read",
  access: "operator",
  body: RotateBody,
  bodyOptional: true,
  answer: RotateAnswer,
  audit: { action: "secrets.rotate", resource: "key" },
  refusals: [413, 422],
});

/** Contracts of {@link secretRoutes}. */
export const SECRET_CONTRACTS = [ROTATE];

/** What operators do with all secrets at once. */
export function secretRoutes(rotate: ReturnType<typeof rotateSecrets>) {
  return new Hono<RouteEnvironment>().post(ROTATE.path, jsonBody(ROTATE.body, true), async (c) => {
    const { limit = ROTATE_DEFAULT, ...rest } = c.req.valid("json");
    const { keyId, rotated, failed, total, nextCursor } = await rotate({ ...rest, limit }, callerOf(c, ROTATE));
    const first = total === undefined ? {} : { total };
    const answer: RotateAnswer = { status: "ok", key_id: keyId, rotated, failed, ...first, next_cursor: nextCursor };
    return c.json(answer);
  });
}
