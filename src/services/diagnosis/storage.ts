import {
  bloatedTables,
  databaseNumbers,
  hasEventsInDefaultPartition,
  sessionNumbers,
  type VacuumBlocker,
  vacuumBlockers,
} from "../../repositories/doctor/database-health.ts";
import type { Reading } from "../../repositories/doctor/read-snapshot.ts";
import type { Finding } from "../../schema/api/doctor.ts";
import { type CheckResult, counted, finding } from "./finding.ts";
import { type DoctorLimits, FINDINGS_MAX, ROWS_MAX } from "./limits.ts";
import { PSQL } from "./psql.ts";

/* The checks of the database itself: what makes it slower each hour, and then stops it. */

/** Half the transaction age at which PostgreSQL refuses writes; autovacuum starts to freeze at a tenth of it. */
const TRANSACTION_AGE_MAX = 1_000_000_000;
/** Connections in use from which new ones will be missed soon. */
const CONNECTIONS_SHARE = 0.9;
/** Number of expired sessions from which the clean-up seems to be missing. */
const SESSIONS_LEFT_MAX = 1_000;

/** Tables full of dead rows. */
export async function checkDeadRows(reading: Reading, limits: DoctorLimits): Promise<CheckResult> {
  const search = { deadMin: limits.deadRowsMin, share: limits.deadRowsShare, limit: FINDINGS_MAX };
  const tables = await bloatedTables(reading, search);
  return {
    findings: tables.map(({ name, dead, live, lastVacuum }) =>
      finding({
        check: "dead_rows",
        what: `The table ${name} has ${counted(dead, "dead row")} beside ${live} live ones`,
        since: lastVacuum,
        why: "Every scan reads the dead rows too, and the table grows: claims and lists become slower each hour.",
        todo: "See whether something keeps them (check vacuum_blockers), then vacuum; if it comes again, make autovacuum bolder.",
        command: `${PSQL} -c 'VACUUM (ANALYZE) ${name}'`,
        count: dead,
      }),
    ),
  };
}

/** What keeps dead rows from being removed. */
export async function checkVacuumBlockers(reading: Reading, limits: DoctorLimits): Promise<CheckResult> {
  const blockers = await vacuumBlockers(reading, limits.idleTransactionMs, FINDINGS_MAX);
  return { findings: blockers.map(blockerFinding) };
}

const BLOCKERS: Readonly<Record<VacuumBlocker["kind"], { what: string; todo: string; statement(id: string): string }>> =
  {
    transaction: {
      what: "A transaction that does nothing stays open in the session",
      todo: "Find who forgot it, or end its session: what it has written is rolled back.",
      statement: (id) => `SELECT pg_terminate_backend(${Number(id)})`,
    },
    prepared: {
      what: "A prepared transaction was neither committed nor rolled back:",
      todo: "Commit it or roll it back.",
      statement: (id) => `ROLLBACK PREPARED ${quoted(id)}`,
    },
    slot: {
      what: "A replication slot without a reader keeps old rows:",
      todo: "Start its reader, or drop the slot when that is gone for good.",
      statement: (id) => `SELECT pg_drop_replication_slot(${quoted(id)})`,
    },
  };

function blockerFinding({ kind, id, who, since }: VacuumBlocker): Finding {
  const { what, todo, statement } = BLOCKERS[kind];
  return finding({
    check: "vacuum_blockers",
    what: `${what} ${id} (${who})`,
    since,
    why: "No row that died since then can be removed, in any table: all of them grow, and every statement becomes slower.",
    todo,
    command: `${PSQL} <<'SQL'\n${statement(id)};\nSQL`,
  });
}

/** A text as a literal of SQL. Names of slots and prepared transactions are short; a line break would end the command's text. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "''").replaceAll(/[\r\n]/g, " ")}'`;
}

/** The database as a whole. */
export async function checkDatabase(reading: Reading): Promise<CheckResult> {
  const { bytes, transactionAge, connections, connectionsMax } = await databaseNumbers(reading);
  const findings: Finding[] = [];
  if (transactionAge > TRANSACTION_AGE_MAX) {
    findings.push(
      finding({
        check: "transaction_age",
        what: `The database's oldest rows are ${transactionAge} transactions old`,
        since: null,
        why: "At two thousand million PostgreSQL refuses every write.",
        todo: "See whether something keeps autovacuum from freezing (check vacuum_blockers), and freeze.",
        command: `${PSQL} -c 'VACUUM (FREEZE)'`,
      }),
    );
  }
  if (connections >= CONNECTIONS_SHARE * connectionsMax) {
    findings.push(
      finding({
        check: "connections",
        what: `${connections} of ${connectionsMax} connections are in use`,
        since: null,
        why: "A server that finds none answers 503, and its executions wait.",
        todo: "Raise max_connections, put a pooler in front, or run fewer servers.",
        command: `${PSQL} -c 'SELECT application_name, count(*) FROM pg_stat_activity GROUP BY 1 ORDER BY 2 DESC'`,
      }),
    );
  }
  if (await hasEventsInDefaultPartition(reading)) {
    findings.push(
      finding({
        check: "log_partitions",
        what: "Events stand in the log's default partition: that of their month is missing",
        since: null,
        why: "Retention drops whole partitions; what stands there stays, and is searched with every month.",
        todo: "A server makes the missing ones at its start and each day, and moves these events: see what its log says of it.",
        command: "flow serve --role=server",
      }),
    );
  }
  return { findings, counts: { database_bytes: bytes, connections } };
}

/** Sessions of people. */
export async function checkSessions(reading: Reading): Promise<CheckResult> {
  const sessions = await sessionNumbers(reading, 10 * ROWS_MAX);
  if (sessions === undefined) return { findings: [] };
  const { active, endingSoon, left } = sessions;
  const findings: Finding[] = [];
  if (endingSoon > 0) {
    findings.push(
      finding({
        check: "sessions",
        level: "notice",
        what: `${counted(endingSoon, "session")} of ${active} end${endingSoon === 1 ? "s" : ""} within the hour`,
        since: null,
        why: "Their users have to log in again.",
        todo: "Nothing, unless a program uses one of them: it needs its own token.",
        count: endingSoon,
      }),
    );
  }
  if (left >= SESSIONS_LEFT_MAX) {
    findings.push(
      finding({
        check: "sessions",
        what: `${counted(left, "session")} ended more than a day ago and ${left === 1 ? "is" : "are"} still there`,
        since: null,
        why: "No server deletes what is over: its background work does not run.",
        todo: "See that a server runs, and what its log says of background work that failed.",
        command: "flow-doctor reachability",
        count: left,
      }),
    );
  }
  return { findings, counts: { sessions_active: active } };
}
