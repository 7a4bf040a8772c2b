import { describeConfig } from "../../src/platform/config.ts";

/**
 * Settings that the manifests have before the program reads them, of roles that come with a later part (interface
 * specification, Gateway settings). An entry may go when `flow config` shows it.
 */
export const LATER_SETTINGS = [
  "FLOW_GATEWAY_PORT",
  "FLOW_DOCTOR_PORT",
  "FLOW_BASE_URL",
  "GATEWAY_PUBLIC_URL",
  "CORS_ALLOWED_ORIGINS",
  "GATEWAY_AUTH_BYPASS",
];

/** Settings of other programs in `deploy/`. */
export const FOREIGN_SETTINGS = [
  "POSTGRES_USER",
  "POSTGRES_DB",
  "POSTGRES_PASSWORD",
  "PGDATA",
  "NATS_PASSWORD",
  "NODE_ENV",
];

const SETTINGS = describeConfig({}).map(({ name }) => name);

/** Those of these names that nothing reads. */
export function unknownSettings(names: Iterable<string>): string[] {
  return [...names].filter((name) => ![...SETTINGS, ...LATER_SETTINGS, ...FOREIGN_SETTINGS].includes(name));
}

/** The port of the server's API by default. */
export const SERVER_PORT = Number(describeConfig({}).find(({ name }) => name === "FLOW_SERVER_PORT")?.default);

/** Ports of the roles, and where each answers that it lives (interface specification, Components, Gateway, Doctor). */
export const PROBED = {
  server: { port: SERVER_PORT, path: "/api/health" },
  gateway: { port: 8090, path: "/health" },
  doctor: { port: 8765, path: "/healthz" },
} as const;
