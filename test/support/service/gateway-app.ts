import { Readable, Writable } from "node:stream";
import { createSecret } from "../../../src/platform/crypto/secret.ts";
import { createIds } from "../../../src/platform/system/ids.ts";
import { createGatewayMetrics } from "../../../src/platform/telemetry/gateway-metrics.ts";
import { createLogger } from "../../../src/platform/telemetry/logger.ts";
import { createGatewayApp, type GatewayAppDeps } from "../../../src/routes/gateway/app.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";

/** The page that may call, and one that may not. */
export const PAGE = "https://app.example.com";
export const EVIL = "https://evil.example";
/** A session's token, as it looks like. */
export const TOKEN = "A".repeat(43);
/** The operator's token: it must never be seen. */
export const OPERATOR = "operator-token-canary";

/** A call that came through to the server. */
export interface PassedCall {
  method: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  body: string;
}

/** The gateway's public side with a server that does not answer. */
export interface TestGateway {
  app: ReturnType<typeof createGatewayApp>;
  passed: PassedCall[];
  revoked: string[];
  stopping: AbortController;
  log(): string;
}

type Answer = Awaited<ReturnType<GatewayAppDeps["proxy"]["forward"]>>;

/** What a test wants otherwise. */
export interface TestGatewayOptions {
  bypass?: boolean;
  hosts?: ReadonlySet<string>;
  gui?: GatewayAppDeps["gui"];
  login?: Partial<GatewayAppDeps["login"]>;
  /** What the server answers. Default: 200 and an empty object. */
  answer?: (call: PassedCall) => Answer | Promise<Answer>;
}

/** An answer of the server. */
export function answerOf(status: number, headers: Record<string, string>, body: string | Readable): Answer {
  return { status, headers, body: typeof body === "string" ? Readable.from([Buffer.from(body)]) : body };
}

/** A gateway without ports. */
export function testGateway(options: TestGatewayOptions = {}): TestGateway {
  const { bypass = false, answer = () => answerOf(200, { "content-type": "application/json" }, "{}") } = options;
  const passed: PassedCall[] = [];
  const revoked: string[] = [];
  const stopping = new AbortController();
  let log = "";
  const sink = new Writable({
    write(chunk, _, done) {
      log += String(chunk);
      done();
    },
  });
  const app = createGatewayApp({
    isLeaving: () => false,
    login: {
      login: () => Promise.reject(new FlowError("INTERNAL", "no logins in this test")),
      providers: () => Promise.resolve([]),
      check: () => Promise.resolve(undefined),
      revoke: (tokenSha256) => Promise.resolve(void revoked.push(tokenSha256)),
      isAllowed: () => Promise.resolve(false),
      bypass,
      cookie: { name: "session_token", path: "/" },
      now: Date.now,
      ...options.login,
    },
    proxy: {
      async forward({ method, path, headers, body }) {
        const parts: Uint8Array[] = [];
        if (body instanceof Uint8Array) parts.push(body);
        else if (body !== undefined) for await (const part of body) parts.push(part);
        const call = { method, path, headers, body: Buffer.concat(parts).toString() };
        passed.push(call);
        return await answer(call);
      },
      serverToken: createSecret(OPERATOR),
      bypass,
      stopping: stopping.signal,
    },
    origins: { allowed: [PAGE], hosts: options.hosts, bypass },
    gui: options.gui,
    trustedProxies: [],
    logger: createLogger("debug", sink),
    metrics: createGatewayMetrics(),
    newRequestId: createIds(Date.now),
  });
  return { app, passed, revoked, stopping, log: () => log };
}

/** Who calls with a session. */
export function withSession(headers: Record<string, string> = {}): { headers: Record<string, string> } {
  return { headers: { authorization: `Bearer ${TOKEN}`, ...headers } };
}
