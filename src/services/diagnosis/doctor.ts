import type {
  Diagnosis,
  DoctorRequest,
  DoctorToolName,
  Finding,
  Outcome,
  Severity,
  SweepAnswer,
} from "../../schema/api/doctor.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { finding } from "./finding.ts";
import type { DoctorLimits } from "./limits.ts";
import { PSQL } from "./psql.ts";

/** A server as the doctor sees it. Its calls reject with `FlowError`: SERVER_UNREACHABLE where nothing answered. */
export interface DoctorServer {
  url: string;
  /** Resolves when it answers. */
  health(signal: AbortSignal): Promise<void>;
  /** Resolves when it answers from its database; rejects with UNAVAILABLE when that is away. */
  database(signal: AbortSignal): Promise<void>;
  /** What it finds in its database; undefined from a server that has no such route. */
  diagnosis(staleSeconds: number | undefined, signal: AbortSignal): Promise<Diagnosis | undefined>;
  /** One sweep of its reaper; undefined from a server that has no such route. */
  sweep(signal: AbortSignal): Promise<SweepAnswer | undefined>;
  close(): Promise<void>;
}

/** A database as the doctor sees it. */
export interface DoctorDatabase {
  /** Where it is, without user and password. */
  address: string;
  /** Resolves when it answers, with how it is reached, for people. */
  ping(): Promise<string | undefined>;
  diagnose(limits: Partial<DoctorLimits>): Promise<Diagnosis>;
  close(): Promise<void>;
}

/** What the doctor is made of. */
export interface DoctorDeps {
  now(): number;
  /** The server of this address; without one, the doctor's own. Throws `FlowError` for an invalid address. */
  openServer(url: string | undefined): DoctorServer;
  /** The database of this DSN, or the doctor's own; undefined where it has none. Throws `FlowError` for an invalid DSN. */
  openDatabase(dsn: string | undefined): DoctorDatabase | undefined;
  /** Resolves when the broker answers; undefined where the doctor knows of none. */
  pingBroker?: () => Promise<void>;
}

/** The doctor's tools. They always resolve with an outcome; a tool that failed has severity `error`. */
export type Doctor = { [K in DoctorToolName]: (request: DoctorRequest, signal: AbortSignal) => Promise<Outcome> };

/** Sweeps of one repair: each takes as many commands as the server's setting says, 100 by default. */
const SWEEPS_MAX = 20;

/** A doctor over these servers and databases. */
export function createDoctor(deps: DoctorDeps): Doctor {
  return {
    detect: (request, signal) => run(deps, "detect", request, (places) => detect(places, request, signal)),
    reachability: (request, signal) =>
      run(deps, "reachability", request, (places) => reachability(deps, places, signal)),
    repair_trigger_reaper: (request, signal) =>
      run(deps, "repair_trigger_reaper", request, (places) => sweep(places.server, signal)),
  };
}

interface Places {
  server: DoctorServer;
  database: DoctorDatabase | undefined;
}

interface ToolOutcome {
  severity: Severity;
  data: JsonObject;
}

/** Opens the requested server and database, and turns every result or error into an outcome. */
async function run(
  deps: DoctorDeps,
  action: DoctorToolName,
  request: DoctorRequest,
  work: (places: Places) => Promise<ToolOutcome>,
): Promise<Outcome> {
  const open: { close(): Promise<void> }[] = [];
  const outcome = ({ severity, data }: ToolOutcome): Outcome => {
    return { action, severity, generated_at: new Date(deps.now()).toISOString(), data };
  };
  try {
    const server = deps.openServer(request.server_url);
    open.push(server);
    const database = action === "repair_trigger_reaper" ? undefined : deps.openDatabase(request.db_dsn);
    if (database !== undefined) open.push(database);
    return outcome(await work({ server, database }));
  } catch (error) {
    const code = error instanceof FlowError ? error.code : "INTERNAL";
    const hint = code === "SERVER_UNREACHABLE" ? { what_to_do: HELP.server } : {};
    return outcome({ severity: "error", data: { error: messageOf(error), code, ...hint } });
  } finally {
    await Promise.all(open.map((place) => place.close()));
  }
}

/**
 * Finds what is wrong. With a database, the doctor examines it directly, so that a server that hangs hides nothing; without
 * one, or if it cannot be reached from here, the server examines it. Throws if neither answers.
 */
async function detect({ server, database }: Places, request: DoctorRequest, signal: AbortSignal): Promise<ToolOutcome> {
  const staleSeconds = request.stale_seconds;
  const health = await settled(server.health(signal));
  const direct = await settled(database?.diagnose(staleSeconds === undefined ? {} : { staleMs: staleSeconds * 1_000 }));
  const findings: Finding[] = [];
  if (health.error !== undefined) findings.push(serverAway(server, health.error));
  if (direct.error !== undefined) findings.push(databaseAway(database?.address ?? "", direct.error));
  let diagnosis = direct.value;
  if (diagnosis === undefined) {
    if (health.error !== undefined) throw health.error;
    diagnosis = await throughServer(server, staleSeconds, signal, (error) => {
      if (direct.error === undefined) findings.push(databaseAway(`that of ${server.url}`, error));
    });
  }
  findings.push(...(diagnosis?.findings ?? []));
  const anomalies = findings.filter(({ level }) => level === "anomaly").length;
  return {
    severity: anomalies > 0 ? "anomaly" : "ok",
    data: {
      server_url: server.url,
      database: database?.address ?? null,
      looked_through: direct.value === undefined ? "server" : "database",
      stale_seconds: diagnosis?.stale_seconds ?? staleSeconds ?? null,
      anomalies,
      findings,
      checks: diagnosis?.checks ?? [],
      skipped: diagnosis?.skipped ?? [],
      counts: diagnosis?.counts ?? {},
    },
  };
}

/** What the server finds; undefined, after `onAway`, where it has no database at the moment. */
async function throughServer(
  server: DoctorServer,
  staleSeconds: number | undefined,
  signal: AbortSignal,
  onAway: (error: FlowError) => void,
): Promise<Diagnosis | undefined> {
  try {
    const diagnosis = await server.diagnosis(staleSeconds, signal);
    if (diagnosis !== undefined) return diagnosis;
  } catch (error) {
    if (!(error instanceof FlowError) || error.code !== "UNAVAILABLE") throw error;
    onAway(error);
    return undefined;
  }
  const hint = "it is of an older version. Give --db-dsn, or update the server";
  throw new FlowError("NOT_FOUND", `The server at ${server.url} does not tell what is wrong with its work: ${hint}`);
}

/** Who answers: the server, its database, the broker. */
async function reachability(deps: DoctorDeps, { server, database }: Places, signal: AbortSignal): Promise<ToolOutcome> {
  const health = probe("server", server.url, () => server.health(signal));
  const targets = await Promise.all([
    health,
    database === undefined
      ? health.then(({ reachable }) => databaseBehind(server, reachable === true, signal))
      : probe("database", database.address, () => database.ping()),
    ...(deps.pingBroker === undefined ? [] : [probe("broker", "BROKER_URL", deps.pingBroker)]),
  ]);
  return {
    severity: targets.every(({ reachable }) => reachable !== false) ? "ok" : "anomaly",
    data: { server_url: server.url, targets: targets.map((target) => ({ ...target })) },
  };
}

/** The database of a server, which alone knows where it is. */
async function databaseBehind(server: DoctorServer, isUp: boolean, signal: AbortSignal): Promise<Target> {
  const address = `that of ${server.url}`;
  if (isUp) return await probe("database", address, () => server.database(signal));
  const why = "It is asked through the server, which does not answer";
  return { target: "database", address, reachable: null, ms: 0, why, what_to_do: "Give --db-dsn to ask it directly" };
}

interface Target {
  target: "server" | "database" | "broker";
  address: string;
  /** Null if unknown. */
  reachable: boolean | null;
  ms: number;
  /** How it is reached, where that is known. */
  way?: string;
  why?: string;
  what_to_do?: string;
}

async function probe(target: Target["target"], address: string, ask: () => Promise<unknown>): Promise<Target> {
  const began = performance.now();
  const { value: way, error } = await settled(ask());
  const ms = Math.round(performance.now() - began);
  const known = { target, address, reachable: error === undefined, ms, ...(typeof way === "string" && { way }) };
  return error === undefined ? known : { ...known, why: messageOf(error), what_to_do: HELP[target] };
}

const HELP: Readonly<Record<Target["target"], string>> = {
  server: "Start it ('flow serve'), or give its address: --server-url, FLOW_SERVER_URL",
  database: "Start PostgreSQL, and compare its address and password with FLOW_DATABASE_URL",
  broker: "Start NATS, and compare its address and password with BROKER_URL. Work continues by polling meanwhile",
};

/** Has the server's reaper sweep until it finds no more. */
async function sweep(server: DoctorServer, signal: AbortSignal): Promise<ToolOutcome> {
  const republished = { pending: 0, worker: 0, timeout: 0 };
  let sweeps = 0;
  for (let more = true; more && sweeps < SWEEPS_MAX; sweeps += 1) {
    const swept = await server.sweep(signal);
    if (swept === undefined) {
      const note = "The server has no such route: it is of an older version, and sweeps by its clock alone";
      return { severity: "ok", data: { server_url: server.url, status: "not_supported", note, total: 0 } };
    }
    for (const reason of ["pending", "worker", "timeout"] as const) republished[reason] += swept.republished[reason];
    more = swept.more;
  }
  const total = republished.pending + republished.worker + republished.timeout;
  const status = total > 0 ? "republished" : "nothing_to_do";
  return {
    severity: total > 0 ? "repaired" : "ok",
    data: { server_url: server.url, status, total, republished, sweeps },
  };
}

function serverAway({ url }: DoctorServer, error: unknown): Finding {
  return finding({
    check: "server_unreachable",
    what: `The server is not responding: ${messageOf(error)}`,
    since: null,
    why: "Nothing can be started or shown there, and its workers cannot report.",
    todo: "Start it, or see in its log why it hangs. Other servers of the same database take over what it had.",
    command: `curl -sS ${url}/api/health`,
  });
}

function databaseAway(address: string, error: unknown): Finding {
  return finding({
    check: "database_unreachable",
    what: `The database (${address}) cannot be queried: ${messageOf(error)}`,
    since: null,
    why: "Nothing goes on without it: calls are answered with 503, and workers wait.",
    todo: "Start PostgreSQL, and compare its address and password with FLOW_DATABASE_URL.",
    command: `${PSQL} -c "select 1"`,
  });
}

type Settled<T> = { value: T; error: undefined } | { value: undefined; error: unknown };

async function settled<T>(promise: Promise<T> | undefined): Promise<Settled<T | undefined>> {
  try {
    return { value: await promise, error: undefined };
  } catch (error) {
    return { value: undefined, error };
  }
}
