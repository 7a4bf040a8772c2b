import type { Database } from "../../repositories/database/database.ts";
import { unreachable } from "../../repositories/database/error-codes.ts";
import { type Reading, readOnly } from "../../repositories/doctor/read-snapshot.ts";
import type { Diagnosis } from "../../schema/api/doctor.ts";
import type { CredentialDefault } from "../../schema/rules/credential-playbooks.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { checkKeys, checkOpenCredentials, checkUnboundUsers } from "./credentials.ts";
import { type CheckResult, counted, finding, shellWord } from "./finding.ts";
import { DOCTOR_LIMITS, type DoctorLimits } from "./limits.ts";
import { checkProjection } from "./projection.ts";
import { checkDatabase, checkDeadRows, checkSessions, checkVacuumBlockers } from "./storage.ts";
import { checkSystemPlaybooks } from "./system-playbooks.ts";
import {
  checkBatches,
  checkExecutions,
  checkIsolation,
  checkLeft,
  checkStale,
  checkWaiting,
  checkWorkers,
  countOpen,
} from "./work.ts";

/** What is looked at. */
export interface DiagnoseDeps {
  database: Database;
  /** Keys that a server has; undefined if unknown here. */
  keyIds: readonly string[] | undefined;
  /** Room where the embedded database's data is; undefined where it is not on this machine. */
  disk?: () => Promise<{ folder: string; freeBytes: number; totalBytes: number } | undefined>;
  /** Whether the broker is connected; undefined without a broker. */
  brokerIsUp?: () => boolean;
  /** What a server was told to do with credentials that do not say which playbooks may use them; default what the database says. */
  credentialsDefault?: CredentialDefault | undefined;
  /** Whether servers run system playbooks themselves: those with tokens do. Default true. */
  hasOwn?: boolean;
  /** Instead of {@link DOCTOR_LIMITS}. */
  limits?: Partial<DoctorLimits>;
}

type Check = (reading: Reading, limits: DoctorLimits) => Promise<CheckResult>;

/** Checks of the service's work, in the order of their urgency. Each reads one snapshot of the database. */
const WORK_CHECKS: Readonly<Record<string, Check>> = {
  stuck_executions: checkExecutions,
  stale_commands: checkStale,
  waiting_commands: checkWaiting,
  unprocessed_batches: checkBatches,
  left_commands: checkLeft,
  workers_gone: checkWorkers,
  unisolated_workers: checkIsolation,
  projection: checkProjection,
  open_work: countOpen,
};

/** Checks of the database itself. */
const STORAGE_CHECKS: Readonly<Record<string, Check>> = {
  vacuum_blockers: checkVacuumBlockers,
  dead_rows: checkDeadRows,
  database: checkDatabase,
  sessions: checkSessions,
};

/** Free room below which the embedded database will soon have none: both at once, or the second alone. */
const DISK_SHARE_MIN = 0.05;
const DISK_BYTES_MIN = 1_073_741_824;

/**
 * Runs all checks. A check that fails is listed in `skipped`, which is a finding too, and the others continue. Throws
 * `FlowError` UNAVAILABLE if the database cannot be reached, and SCHEMA_MISMATCH if no check of the work could run.
 */
export function createDiagnosis(deps: DiagnoseDeps): (limits?: Partial<DoctorLimits>) => Promise<Diagnosis> {
  const { database } = deps;
  return async (given = {}) => {
    const limits = { ...DOCTOR_LIMITS, ...deps.limits, ...given };
    const diagnosis: Diagnosis = {
      stale_seconds: limits.staleMs / 1_000,
      checks: [],
      findings: [],
      skipped: [],
      counts: {},
    };
    const add = async (check: string, look: () => Promise<CheckResult | undefined> | CheckResult | undefined) => {
      try {
        const result = await look();
        if (result === undefined) return;
        diagnosis.checks.push(check);
        diagnosis.findings.push(...result.findings);
        Object.assign(diagnosis.counts, result.counts);
      } catch (error) {
        const away = unreachable(error);
        if (away !== undefined) throw away;
        diagnosis.skipped.push({ check, why: messageOf(error) });
      }
    };
    for (const [name, check] of Object.entries({ ...WORK_CHECKS, ...STORAGE_CHECKS })) {
      await add(name, () => readOnly(database, limits.statementMs, (reading) => check(reading, limits)));
    }
    await add("encryption_keys", () => checkKeys(database, deps.keyIds));
    await add("open_credentials", () =>
      readOnly(database, limits.statementMs, (reading) => checkOpenCredentials(reading, deps.credentialsDefault)),
    );
    await add("system_playbooks", () =>
      readOnly(database, limits.statementMs, (reading) => checkSystemPlaybooks(reading, deps.hasOwn ?? true)),
    );
    await add("unbound_users", () => readOnly(database, limits.statementMs, checkUnboundUsers));
    await add("disk", () => checkDisk(deps));
    await add("broker", () => checkBroker(deps));
    return complete(diagnosis);
  };
}

/**
 * Adds a finding for skipped checks: "nothing wrong" must not be reported for what was not checked. Throws `FlowError`
 * SCHEMA_MISMATCH if no work could be checked.
 */
function complete(diagnosis: Diagnosis): Diagnosis {
  const { skipped } = diagnosis;
  const work = skipped.filter(({ check }) => Object.hasOwn(WORK_CHECKS, check));
  if (work.length === Object.keys(WORK_CHECKS).length) {
    const question = "Is it the database of the service, and may this role read the schemas flow and auth?";
    throw new FlowError("SCHEMA_MISMATCH", `Nothing could be looked at: ${work[0]?.why}. ${question}`);
  }
  if (skipped.length === 0) return diagnosis;
  const missed = finding({
    check: "skipped_checks",
    what: `${counted(skipped.length, "check")} could not be made: ${skipped.map(({ check }) => check).join(", ")}`,
    since: null,
    why: "The problems that they look for would go unnoticed.",
    todo: "See in `skipped` why: a role that may not read, or a database that does not answer in time.",
  });
  return { ...diagnosis, findings: [...diagnosis.findings, missed] };
}

async function checkDisk({ disk }: DiagnoseDeps): Promise<CheckResult | undefined> {
  const room = await disk?.();
  if (room === undefined) return undefined;
  const { folder, freeBytes, totalBytes } = room;
  const isLow = freeBytes < DISK_BYTES_MIN || freeBytes < DISK_SHARE_MIN * totalBytes;
  const low = finding({
    check: "disk",
    what: `The disk of the embedded database (${folder}) has ${Math.round(freeBytes / 1_048_576)} MiB left`,
    since: null,
    why: "Without room PostgreSQL stops, and every execution with it.",
    todo: "Make room, keep finished executions for fewer days (FLOW_RETENTION_DAYS), or move FLOW_HOME.",
    command: `df -h ${shellWord(folder)}`,
  });
  return { findings: isLow ? [low] : [], counts: { disk_free_bytes: freeBytes } };
}

function checkBroker({ brokerIsUp }: DiagnoseDeps): CheckResult | undefined {
  if (brokerIsUp === undefined) return undefined;
  if (brokerIsUp()) return { findings: [] };
  const away = finding({
    check: "broker",
    what: "The message broker cannot be reached",
    since: null,
    why: "Work continues by polling: steps wait up to a second longer, and cancelling takes longer to arrive.",
    todo: "Start the broker, or correct BROKER_URL. Nothing is lost meanwhile.",
    command: "flow-doctor reachability",
  });
  return { findings: [away] };
}
