import { setMaxListeners } from "node:events";
import { followAccessChanges } from "../../adapters/access-changes.ts";
import { createIdTokens } from "../../adapters/login/id-tokens.ts";
import { createLoginProviders, type LoginProviders } from "../../adapters/login/providers.ts";
import { connectServer } from "../../adapters/server/connection.ts";
import { createForwarder } from "../../adapters/server/forwarder.ts";
import { systemClock } from "../../adapters/system-clock.ts";
import type { Config } from "../../platform/config/config.ts";
import { type PublicAddress, publicAddress, publicPathOf } from "../../platform/config/public-address.ts";
import { callbackToken } from "../../platform/crypto/callback-token.ts";
import { isLoopback } from "../../platform/http/loopback.ts";
import { readGuiFiles } from "../../platform/http/page-files.ts";
import { createIds } from "../../platform/system/ids.ts";
import type { Lifecycle } from "../../platform/system/lifecycle.ts";
import { packagePath } from "../../platform/system/package-file.ts";
import { createGatewayMetrics, type GatewayMetrics } from "../../platform/telemetry/gateway-metrics.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { KeyValueStore } from "../../ports/key-value.ts";
import { createGatewayApp } from "../../routes/gateway/app.ts";
import { createCallbackApp } from "../../routes/gateway/callbacks.ts";
import { sessionCookie } from "../../routes/gateway/session-token.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type Callbacks, createCallbacks } from "../../services/login/callbacks.ts";
import { createLogin } from "../../services/login/login.ts";
import { createLoginLimit } from "../../services/login/rate-limit.ts";
import { createSessions, type Sessions } from "../../services/login/sessions.ts";
import { lameDuckMs, openLameDuck } from "../http/lame-duck.ts";
import { listen } from "../http/listen.ts";
import { malformed } from "../http/malformed.ts";
import { checkGateway } from "./check-settings.ts";
import { createGatewayServer, type GatewayServer } from "./server-client.ts";

/** What a gateway needs to begin. */
export interface GatewayDeps {
  config: Config;
  host: string;
  port: number;
  /** The server, where it runs in this process; else FLOW_BASE_URL, FLOW_SERVER_URL or this machine's. */
  serverUrl?: string;
  logger: Logger;
  /** Every started part is added to it; its owner stops it, also when this throws. */
  lifecycle: Lifecycle;
  /** Aborted when the process is to stop. */
  signal: AbortSignal;
}

/** A gateway that answers. */
export interface RunningGateway {
  /** For browsers. */
  url: string;
  /** For callbacks of playbooks, as workers reach it. */
  callbackUrl: string;
  serverUrl: string;
}

const DEFAULT_SERVER = "http://127.0.0.1:8082";
/** Connections for calls that are answered at once. */
const CALLS_MAX = 64;
/** Connections that wait for the end of slow logins; further ones wait for their callback alone. */
const WAITS_MAX = 64;

/**
 * The role `gateway` (interface specification, Gateway): logins, sessions, CORS, and the server's API for those who are logged
 * in. It has no database; it starts whether the server answers or not. Throws `FlowError` INVALID_SETTING.
 */
export async function startGateway(deps: GatewayDeps): Promise<RunningGateway> {
  const { config, host, port, logger, lifecycle, signal } = deps;
  checkGateway(config, host, logger);
  const serverUrl = deps.serverUrl ?? config.gatewayServerUrl ?? config.serverUrl ?? DEFAULT_SERVER;
  const stopping = new AbortController();
  // Every live stream listens to it. Node takes eleven for a leak.
  setMaxListeners(0, stopping.signal);
  const instruments = { logger, metrics: createGatewayMetrics(), newRequestId: createIds(Date.now) };
  const { callbacks, callbackUrl } = await openCallbacks(deps, { ...instruments, stopping: stopping.signal });
  const server = openServer(deps, serverUrl, stopping.signal);
  const sessions = openSessions(deps, {
    serverUrl,
    server,
    store: await openStore(deps),
    metrics: instruments.metrics,
  });
  const forwarder = createForwarder(serverUrl);
  lifecycle.add("the calls that are passed on", () => forwarder.close());
  const { authBypass: bypass, serverToken } = config;
  const providers = openProviders(config);
  const login = openLogin(deps, { callbacks, callbackUrl, server, sessions, providers });
  const own = publicAddress(config.gatewayPublicUrl ?? config.publicUrl);
  const app = createGatewayApp({
    ...instruments,
    login: {
      login: counted(login, instruments.metrics),
      providers: providers.list,
      check: sessions.check,
      async revoke(tokenSha256) {
        await server.revoke(tokenSha256);
        sessions.changed([tokenSha256]);
      },
      isAllowed: server.isAllowed,
      bypass,
      cookie: sessionCookie(own),
      now: Date.now,
    },
    proxy: { forward: forwarder.forward, serverToken, bypass, stopping: stopping.signal },
    origins: originRules(config, host, own),
    gui: readGuiFiles(packagePath("dist/page"), "/flow", own?.path),
    trustedProxies: config.trustedProxies,
    isLeaving: () => signal.aborted,
  });
  const listener = await listen(
    { fetch: (request, env) => app.fetch(request, env), malformed: () => malformed(instruments.newRequestId()) },
    { host, port, portBy: "FLOW_GATEWAY_PORT", ...publicPathOf(config, own) },
  );
  lifecycle.add("the gateway's HTTP server", () => listener.close());
  // Live streams are ended, so that the HTTP server can end.
  lifecycle.add("who listens to live streams", () => stopping.abort());
  openLameDuck({ signal, lameDuckMs: lameDuckMs(config, host), lifecycle, listeners: [listener] });
  return { url: listener.url, callbackUrl, serverUrl };
}

/** Logging, metrics and ids that both listeners of a gateway share. */
interface Instruments {
  logger: Logger;
  metrics: GatewayMetrics;
  newRequestId(): string;
}

async function openCallbacks(
  { config, host, lifecycle }: GatewayDeps,
  instruments: Instruments & { stopping: AbortSignal },
) {
  const callbacks = createCallbacks();
  const app = createCallbackApp({ ...instruments, callbacks, token: callbackToken(config.serverToken) });
  const listener = await listen(
    { fetch: (request, env) => app.fetch(request, env), malformed: () => malformed(instruments.newRequestId()) },
    {
      host: config.gatewayInternalHost ?? host,
      port: config.gatewayInternalPort,
      portBy: "FLOW_GATEWAY_INTERNAL_PORT",
    },
  );
  lifecycle.add("the listener for callbacks", () => listener.close());
  return { callbacks, callbackUrl: config.gatewayInternalUrl ?? reachable(listener.url) };
}

function openProviders(config: Config): LoginProviders {
  const { idpDomains: domains, idpProviders: providers, idpAudience: audience } = config;
  return createLoginProviders({ domains, audience, providers }, { fetch, now: Date.now });
}

function openLogin(
  { config, logger }: GatewayDeps,
  parts: {
    callbacks: Callbacks;
    callbackUrl: string;
    server: GatewayServer;
    sessions: Sessions;
    providers: LoginProviders;
  },
) {
  const { idpDomains: domains, idpProviders: providers, idpAudience: audience } = config;
  const { callbacks, callbackUrl, server, sessions } = parts;
  return createLogin({
    isDomain: (domain) => domains.includes(domain) || providers.has(domain),
    limit: createLoginLimit(config.loginsPerMinute, () => performance.now()),
    exchange: parts.providers.exchange,
    verify: createIdTokens({ domains, audience, providers }, { fetch, now: Date.now }).verify,
    callbacks,
    callbackUrl,
    start: server.startLogin,
    ended: server.ended,
    sessionOf: sessions.check,
    sleep: systemClock.sleep,
    onCallbackMissed(executionId) {
      const hint = `servers must reach ${callbackUrl} (FLOW_GATEWAY_INTERNAL_URL), as FLOW_HTTP_ALLOW_PRIVATE lets them`;
      logger.warn({ execution_id: executionId }, `a login was slow as its callback did not come: ${hint}`);
    },
    onRefused(refused) {
      server.loginRefused(refused).catch((error: unknown) => {
        logger.warn({ err: error, code: refused.code }, "a refused login could not be recorded in the audit log");
      });
    },
    loginMs: config.loginMs,
    sessionMs: config.sessionMs,
    sessionIdleMs: config.sessionIdleMs,
  });
}

/** The same, and how it ended is counted. */
function counted(login: ReturnType<typeof createLogin>, metrics: GatewayMetrics): typeof login {
  return async (request) => {
    try {
      const logged = await login(request);
      metrics.loginEnded("ok");
      return logged;
    } catch (error) {
      metrics.loginEnded(error instanceof FlowError ? error.code : "INTERNAL");
      throw error;
    }
  };
}

function openServer({ config, lifecycle }: GatewayDeps, url: string, stopping: AbortSignal) {
  // A login may take that long, whatever its time goes into.
  const { serverToken: token, loginMs: connectMs } = config;
  const calls = connectServer({ url, token, connectMs, connections: CALLS_MAX });
  const waits = connectServer({ url, token, connectMs, connections: WAITS_MAX });
  lifecycle.add("the connections to the server", async () => {
    await Promise.all([calls.close(), waits.close()]);
  });
  const playbook = `api_integration/${config.idpName}/login`;
  return createGatewayServer({ calls, waits, playbook, answerMs: config.loginMs, stopping });
}

function openSessions(
  { config, logger, lifecycle }: GatewayDeps,
  parts: { serverUrl: string; server: GatewayServer; store: KeyValueStore | undefined; metrics: GatewayMetrics },
): Sessions {
  const { serverUrl, server, store, metrics } = parts;
  const sessions = createSessions({
    ask: server.session,
    store,
    // Never goes back: a change must not seem older than what it changes.
    now: () => performance.timeOrigin + performance.now(),
    onChecked: metrics.sessionChecked,
    onFault: (err) => logger.debug({ err }, "the broker's bucket of sessions could not be used"),
  });
  const stop = followAccessChanges({
    url: serverUrl,
    token: config.serverToken,
    logger,
    onListening: sessions.onListening,
    changed: sessions.changed,
  });
  lifecycle.add("hearing of changes", stop);
  return sessions;
}

async function openStore({ config, logger, lifecycle }: GatewayDeps): Promise<KeyValueStore | undefined> {
  if (config.brokerUrl === undefined) return undefined;
  const { openNatsLink } = await import("../../adapters/nats/connection.ts");
  const { createNatsKeyValue } = await import("../../adapters/nats/key-value.ts");
  const link = openNatsLink(config.brokerUrl, logger);
  lifecycle.add("the connection to NATS", () => link.close());
  return createNatsKeyValue({ link, now: Date.now });
}

function originRules(config: Config, host: string, own: PublicAddress | undefined) {
  return {
    allowed: config.corsOrigins ?? (own === undefined ? [] : [own.origin]),
    hosts: isLoopback(host) ? new Set(own === undefined ? [] : [own.host]) : undefined,
    bypass: config.authBypass,
  };
}

/** What listens on every address is reached, from here, by loopback. */
function reachable(url: string): string {
  return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
}
