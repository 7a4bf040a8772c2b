import { ROTATE_DEFAULT, type RotateAnswer } from "../../schema/api/secrets.ts";
import { SECRET_ROUTES } from "../../schema/routes/credentials.ts";
import type { rotateSecrets } from "../../services/credentials/rotate-secrets.ts";
import { callerOf } from "../http/audit-caller.ts";
import { serve } from "../http/serve.ts";

/** What operators do with all secrets at once. */
export function secretRoutes(rotate: ReturnType<typeof rotateSecrets>) {
  return serve(SECRET_ROUTES, {
    rotate: async ({ body: { limit = ROTATE_DEFAULT, ...rest }, json }, c) => {
      const { keyId, rotated, failed, total, nextCursor } = await rotate(
        { ...rest, limit },
        callerOf(c, SECRET_ROUTES.rotate),
      );
      const first = total === undefined ? {} : { total };
      const answer: RotateAnswer = { status: "ok", key_id: keyId, rotated, failed, ...first, next_cursor: nextCursor };
      return json(answer);
    },
  });
}
