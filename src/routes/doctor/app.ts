import { type Context, Hono, type MiddlewareHandler } from "hono";
import type { Secret } from "../../platform/crypto/secret.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import { DoctorRequest, type DoctorToolName, type ToolsAnswer } from "../../schema/api/doctor.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import type { Doctor } from "../../services/diagnosis/doctor.ts";
import { refuseMethod } from "../http/allowed-methods.ts";
import { bearerOf, tokenMatcher } from "../http/authenticate.ts";
import { errorAnswers } from "../http/errors.ts";
import { loopbackOnly } from "../http/loopback-only.ts";
import { BODY_BYTES_MAX, parseJson, readBody } from "../http/read-body.ts";
import { bodyLimit, type RouteEnvironment, requests } from "../http/request-context.ts";
import { readJson } from "../http/validate.ts";
import { createWrongTokens } from "../http/wrong-tokens.ts";
import { answerMcp } from "./mcp.ts";
import { TOOLS } from "./tools.ts";

/** What the doctor's surface is made of. */
export interface DoctorAppDeps {
  doctor: Doctor;
  logger: Logger;
  /** Callers must send it; undefined: no authentication. */
  token: Secret | undefined;
  /** It listens on loopback: names and pages from elsewhere are refused. */
  loopback: boolean;
  /** Aborted when the process begins to stop. */
  stopping: AbortSignal;
  version: string;
  newRequestId(): string;
}

const HEALTH = "/healthz";

/**
 * The doctor's HTTP surface (interface specification, Doctor), and its tools over MCP at `/mcp`. Whatever a tool finds is
 * answered with 200: the outcome says how severe it is.
 */
export function createDoctorApp(deps: DoctorAppDeps) {
  const { doctor, stopping } = deps;
  const app = new Hono<RouteEnvironment>();
  app.onError(errorAnswers({ ...deps, unavailable: () => undefined }));
  app.notFound((c) => {
    refuseMethod(c, app.router);
    return noSuchRoute(c);
  });
  app.use(requests({ ...deps, metrics: { requestDone: () => undefined } }));
  if (deps.loopback) app.use(loopbackOnly());
  app.use(bodyLimit(() => BODY_BYTES_MAX));
  app.use(tokenGuard(deps, HEALTH));
  const signalOf = (c: Context) => AbortSignal.any([c.req.raw.signal, stopping]);
  for (const { name } of TOOLS) {
    app.post(invokePath(name), async (c) => {
      return c.json(await doctor[name](await readJson(c, DoctorRequest, true), signalOf(c)));
    });
  }
  return (
    app
      .get(HEALTH, (c) => c.json({ status: "ok" }))
      .get("/tools", (c) =>
        c.json({
          tools: TOOLS.map(({ name, description, changes, inputSchema }) => {
            return { name, description, invoke: `POST ${invokePath(name)}`, changes, input_schema: inputSchema };
          }),
        } satisfies ToolsAnswer),
      )
      .post("/mcp", async (c) => {
        const body = parseJson(await readBody(c.req.raw, BODY_BYTES_MAX)) as Json;
        return await answerMcp(deps, c.req.raw, body);
      })
      // Clients request a stream of server-initiated messages, and end their session: this server has neither.
      .on(["GET", "DELETE"], "/mcp", (c) => {
        c.header("allow", "POST");
        return c.json(
          { jsonrpc: "2.0", error: { code: -32_000, message: "Only POST: there are no sessions" }, id: null },
          405,
        );
      })
  );
}

function invokePath(name: DoctorToolName): string {
  return `/tools/${name}/invoke`;
}

function noSuchRoute(c: Context): never {
  throw new FlowError("NOT_FOUND", `The doctor has no ${c.req.method} ${c.req.path}; GET /tools lists what it can do`);
}

/**
 * Lets callers with the token in, and everyone to `open`. Without a token there is no authentication: then the doctor listens
 * on loopback only. Reading is guarded too: a caller may name a server and a database that the doctor is to connect to.
 */
function tokenGuard(
  { token, stopping }: Pick<DoctorAppDeps, "token" | "stopping">,
  open: string,
): MiddlewareHandler<RouteEnvironment> {
  const wrongTokens = createWrongTokens(stopping);
  const isExpected = token === undefined ? undefined : tokenMatcher(token);
  return async (c, next) => {
    const isOpen = c.req.method === "GET" && c.req.path === open;
    if (isExpected !== undefined && !isOpen) {
      const given = bearerOf(c.req.header("authorization"));
      if (given === undefined || !isExpected(given)) {
        if (given !== undefined) await wrongTokens.hold(c);
        const hint =
          "send 'Authorization: Bearer <token>' with FLOW_DOCTOR_TOKEN, or FLOW_SERVER_TOKEN where that is not set";
        throw new FlowError("UNAUTHENTICATED", `The doctor could not authenticate this caller; ${hint}`);
      }
    }
    c.set("role", "operator");
    await next();
  };
}
