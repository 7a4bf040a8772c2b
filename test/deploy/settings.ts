import { randomBytes } from "node:crypto";
import { Writable } from "node:stream";
import { describeConfig, loadConfig } from "../../src/platform/config/config.ts";
import { createLogger } from "../../src/platform/telemetry/logger.ts";
import { checkGateway } from "../../src/roles/gateway/check-settings.ts";
import { checkAccess } from "../../src/roles/server/server.ts";

/** The values that an installation fills in. */
const FILLED: Readonly<Record<string, string>> = {
  FLOW_DATABASE_URL: "postgres://flow:secret@postgres:5432/flow",
  BROKER_URL: "nats://flow:secret@nats:4222",
  FLOW_SERVER_TOKEN: randomBytes(32).toString("hex"),
  FLOW_WORKER_TOKEN: randomBytes(32).toString("hex"),
  FLOW_ENCRYPTION_KEYS: `k1:${randomBytes(32).toString("base64")}`,
  FLOW_IDP_DOMAINS: "login.example.com",
  FLOW_IDP_AUDIENCE: "flow",
  POD_IP: "10.20.0.7",
};

/** A secret or an address as an operator would fill it in. */
export function filledIn(name: string): string {
  return FILLED[name] ?? "filled";
}

/** Reads the settings of a container as the program does; as a server's or a gateway's it refuses those that it would not start with. */
export function readSettings(environment: Readonly<Record<string, string>>, role: string): void {
  const config = loadConfig(environment);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  if (role === "server") checkAccess(config, "0.0.0.0");
  if (role === "gateway") checkGateway(config, "0.0.0.0", createLogger("silent", silent));
}

/** Variables in `deploy/` that are of other programs, or there to make others of. */
export const FOREIGN_SETTINGS = [
  "POSTGRES_USER",
  "POSTGRES_DB",
  "POSTGRES_PASSWORD",
  "PGDATA",
  "NATS_PASSWORD",
  "NATS_SECRET",
  "NODE_ENV",
  "POD_IP",
];

const SETTINGS = describeConfig({});
const NAMES = SETTINGS.map(({ name }) => name);

/** Those of these names that nothing reads. */
export function unknownSettings(names: Iterable<string>): string[] {
  return [...names].filter((name) => ![...NAMES, ...FOREIGN_SETTINGS].includes(name));
}

function portOf(setting: string): number {
  return Number(SETTINGS.find(({ name }) => name === setting)?.default);
}

/** Ports of the roles by default, and where each answers that it lives (interface specification, Components, Gateway, Doctor). */
export const PROBED = {
  server: { port: portOf("FLOW_SERVER_PORT"), path: "/api/health" },
  gateway: { port: portOf("FLOW_GATEWAY_PORT"), path: "/health" },
  doctor: { port: portOf("FLOW_DOCTOR_PORT"), path: "/healthz" },
} as const;

/** Port of the gateway's listener for callbacks by default. */
export const CALLBACK_PORT = portOf("FLOW_GATEWAY_INTERNAL_PORT");
