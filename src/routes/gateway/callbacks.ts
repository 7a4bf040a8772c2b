import { Hono } from "hono";
import type { Secret } from "../../platform/crypto/secret.ts";
import type { GatewayMetrics } from "../../platform/telemetry/gateway-metrics.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import { CallbackBody } from "../../schema/api/gateway.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Callbacks } from "../../services/login/callbacks.ts";
import { refuseMethod } from "../http/allowed-methods.ts";
import { bearerOf, tokenMatcher } from "../http/authenticate.ts";
import { errorAnswers } from "../http/errors.ts";
import { BODY_BYTES_MAX } from "../http/read-body.ts";
import { bodyLimit, type RouteEnvironment, requests } from "../http/request-context.ts";
import { readJson } from "../http/validate.ts";
import { createWrongTokens } from "../http/wrong-tokens.ts";

/** What the gateway's internal side is made of. */
export interface CallbackAppDeps {
  callbacks: Pick<Callbacks, "take">;
  /** What callbacks must bring as `Authorization: Bearer`. */
  token: Secret;
  logger: Logger;
  metrics: Pick<GatewayMetrics, "requestDone" | "expose">;
  newRequestId(): string;
  /** Aborted when the gateway stops. */
  stopping: AbortSignal;
}

/**
 * Callbacks of the system playbooks (interface specification, Gateway), on a listener that only workers reach, and health and
 * metrics. A callback needs the internal token, a request that is still waiting, and to come from the execution that the
 * request was given to. The asynchronous route answers before the content is checked.
 */
export function createCallbackApp({ callbacks, token, ...deps }: CallbackAppDeps) {
  const app = new Hono<RouteEnvironment>();
  const isInternal = tokenMatcher(token);
  const wrongTokens = createWrongTokens(deps.stopping);
  app.onError(errorAnswers({ logger: deps.logger, unavailable: () => undefined }));
  app.notFound((c) => {
    refuseMethod(c, app.router);
    throw new FlowError("NOT_FOUND", `There is no ${c.req.method} ${c.req.path} for callbacks`);
  });
  app.use(requests(deps));
  app.use(bodyLimit(() => BODY_BYTES_MAX));
  app.use("/api/*", async (c, next) => {
    const given = bearerOf(c.req.header("authorization"));
    if (given !== undefined && isInternal(given)) return await next();
    if (given !== undefined) await wrongTokens.hold(c);
    const hint = "playbooks send it with 'auth: gateway_callback'";
    throw new FlowError("UNAUTHENTICATED", `A callback must bring the internal token; ${hint}`);
  });
  return app
    .get("/health", (c) => c.text("ok"))
    .get("/metrics", async (c) => {
      const { contentType, text } = await deps.metrics.expose();
      return c.body(text, 200, { "content-type": contentType });
    })
    .post("/api/internal/callback", async (c) => {
      await callbacks.take(await readJson(c, CallbackBody));
      return c.json({ status: "ok" });
    })
    .post("/api/internal/callback/async", async (c) => {
      callbacks.take(await readJson(c, CallbackBody)).catch((err: unknown) => {
        deps.logger.info({ err, request_id: c.var.requestId }, "a callback was not waited for");
      });
      return c.json({ status: "accepted" }, 202);
    });
}
