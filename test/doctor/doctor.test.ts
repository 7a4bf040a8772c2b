import assert from "node:assert/strict";
import { test } from "node:test";
import type { Diagnosis, Finding, SweepAnswer } from "../../src/schema/api/doctor.ts";
import { FlowError } from "../../src/schema/words/errors.ts";
import { createDoctor, type DoctorDatabase, type DoctorServer } from "../../src/services/diagnosis/doctor.ts";

/* What the doctor makes of servers and databases that answer, hang or are old. */

const SIGNAL = new AbortController().signal;
const NOTHING: Diagnosis = { stale_seconds: 60, checks: ["projection"], findings: [], skipped: [], counts: {} };
const ANOMALY: Finding = {
  check: "stuck_executions",
  level: "anomaly",
  what: "w",
  since: null,
  why_it_matters: "y",
  what_to_do: "d",
  command: null,
};
const down = () => Promise.reject(new FlowError("SERVER_UNREACHABLE", "connect ECONNREFUSED"));
const away = () => Promise.reject(new FlowError("UNAVAILABLE", "no database"));

function server(more: Partial<DoctorServer> = {}): DoctorServer {
  return {
    url: "http://server",
    health: () => Promise.resolve(),
    database: () => Promise.resolve(),
    diagnosis: () => Promise.resolve(NOTHING),
    sweep: () =>
      Promise.resolve({ status: "ok", republished: { pending: 0, worker: 0, timeout: 0 }, total: 0, more: false }),
    close: () => Promise.resolve(),
    ...more,
  };
}

const DEAD = server({ health: down, database: down, diagnosis: down, sweep: down });

function database(more: Partial<DoctorDatabase> = {}): DoctorDatabase {
  return {
    address: "db:5432/flow",
    ping: () => Promise.resolve(undefined),
    diagnose: () => Promise.resolve(NOTHING),
    close: () => Promise.resolve(),
    ...more,
  };
}

function doctor(of: DoctorServer, db?: DoctorDatabase, pingBroker?: () => Promise<void>) {
  const broker = pingBroker === undefined ? {} : { pingBroker };
  return createDoctor({ now: () => 0, openServer: () => of, openDatabase: () => db, ...broker });
}

const checks = ({ data }: { data: object }) => (data as { findings: Finding[] }).findings.map(({ check }) => check);

test("detect: no findings and notices are ok, an anomaly is severity anomaly", async () => {
  const found = (findings: Finding[]) => server({ diagnosis: () => Promise.resolve({ ...NOTHING, findings }) });
  const severity = async (findings: Finding[]) => (await doctor(found(findings)).detect({}, SIGNAL)).severity;
  assert.equal(await severity([]), "ok");
  assert.equal(await severity([{ ...ANOMALY, level: "notice" }]), "ok");
  assert.equal(await severity([{ ...ANOMALY, level: "notice" }, ANOMALY]), "anomaly");
});

test("detect: the outcome has action, severity, time and data", async () => {
  const outcome = await doctor(server()).detect({ stale_seconds: 7 }, SIGNAL);
  assert.deepEqual(outcome, {
    action: "detect",
    severity: "ok",
    generated_at: "1970-01-01T00:00:00.000Z",
    data: {
      server_url: "http://server",
      database: null,
      looked_through: "server",
      stale_seconds: 60,
      anomalies: 0,
      findings: [],
      checks: ["projection"],
      skipped: [],
      counts: {},
    },
  });
});

test("detect: the stale threshold reaches the checks", async () => {
  const asked: unknown[] = [];
  const of = server({
    diagnosis(seconds) {
      asked.push(seconds);
      return Promise.resolve(NOTHING);
    },
  });
  const db = database({
    diagnose(limits) {
      asked.push(limits);
      return Promise.resolve(NOTHING);
    },
  });
  await doctor(of).detect({ stale_seconds: 7 }, SIGNAL);
  await doctor(of, db).detect({ stale_seconds: 7 }, SIGNAL);
  await doctor(of, db).detect({}, SIGNAL);
  assert.deepEqual(asked, [7, { staleMs: 7_000 }, {}]);
});

test("detect: with a database a dead server is a finding, and its work is looked at all the same", async () => {
  const db = database({ diagnose: () => Promise.resolve({ ...NOTHING, findings: [ANOMALY] }) });
  const outcome = await doctor(DEAD, db).detect({}, SIGNAL);
  assert.equal(outcome.severity, "anomaly");
  assert.deepEqual(checks(outcome), ["server_unreachable", "stuck_executions"]);
});

test("detect: a database that cannot be reached from here is a finding, and the server looks", async () => {
  const outcome = await doctor(server(), database({ diagnose: away })).detect({}, SIGNAL);
  assert.deepEqual(checks(outcome), ["database_unreachable"]);
  assert.equal(outcome.data["looked_through"], "server");
});

test("detect: a server whose database is away is a finding", async () => {
  const outcome = await doctor(server({ diagnosis: away })).detect({}, SIGNAL);
  assert.equal(outcome.severity, "anomaly");
  assert.deepEqual(checks(outcome), ["database_unreachable"]);
});

test("detect: where neither server nor database answers, nothing is known: error", async () => {
  for (const db of [undefined, database({ diagnose: away })]) {
    const outcome = await doctor(DEAD, db).detect({}, SIGNAL);
    assert.equal(outcome.severity, "error");
    assert.equal(outcome.data["code"], "SERVER_UNREACHABLE");
    assert.match(String(outcome.data["what_to_do"]), /flow serve/);
  }
});

test("detect: a server that refuses the token is an error, and no statement about what runs", async () => {
  const diagnosis = () => Promise.reject(new FlowError("UNAUTHENTICATED", "no token"));
  assert.equal((await doctor(server({ diagnosis })).detect({}, SIGNAL)).severity, "error");
});

test("detect: a server that is too old to answer is an error that says so", async () => {
  const outcome = await doctor(server({ diagnosis: () => Promise.resolve(undefined) })).detect({}, SIGNAL);
  assert.equal(outcome.severity, "error");
  assert.match(String(outcome.data["error"]), /older version\. Give --db-dsn/);
});

test("reachability: all answer, or the severity is anomaly", async () => {
  const up = () => Promise.resolve();
  const severity = async (...of: Parameters<typeof doctor>) => (await doctor(...of).reachability({}, SIGNAL)).severity;
  assert.equal(await severity(server(), database(), up), "ok");
  assert.equal(await severity(server()), "ok");
  assert.equal(await severity(DEAD, database(), up), "anomaly");
  assert.equal(await severity(server({ database: away })), "anomaly");
  assert.equal(await severity(server(), database({ ping: away })), "anomaly");
  assert.equal(await severity(server(), database(), away), "anomaly");
});

test("reachability: of a database behind a dead server nothing is said", async () => {
  const { data } = await doctor(DEAD).reachability({}, SIGNAL);
  const targets = data["targets"] as { target: string; reachable: boolean | null }[];
  assert.deepEqual(
    targets.map(({ target, reachable }) => [target, reachable]),
    [
      ["server", false],
      ["database", null],
    ],
  );
});

const swept = (worker: number, more: boolean): SweepAnswer => {
  return { status: "ok", republished: { pending: 0, worker, timeout: 0 }, total: worker, more };
};

test("repair: sweeps until nothing more is found, and says that something was mended", async () => {
  const answers = [swept(100, true), swept(3, false)];
  const outcome = await doctor(server({ sweep: () => Promise.resolve(answers.shift()) })).repair_trigger_reaper(
    {},
    SIGNAL,
  );
  assert.equal(outcome.severity, "repaired");
  assert.deepEqual([outcome.data["total"], outcome.data["sweeps"]], [103, 2]);
});

test("repair: a server that always has more does not keep the doctor for ever", async () => {
  const outcome = await doctor(server({ sweep: () => Promise.resolve(swept(1, true)) })).repair_trigger_reaper(
    {},
    SIGNAL,
  );
  assert.equal(outcome.data["sweeps"], 20);
});

test("repair: nothing stranded is ok; an older server is a no-op; no server is an error", async () => {
  const repair = (of: DoctorServer) => doctor(of).repair_trigger_reaper({}, SIGNAL);
  assert.deepEqual((await repair(server())).data["status"], "nothing_to_do");
  const old = await repair(server({ sweep: () => Promise.resolve(undefined) }));
  assert.deepEqual([old.severity, old.data["status"]], ["ok", "not_supported"]);
  assert.equal((await repair(DEAD)).severity, "error");
});

test("whatever happens, what was opened is closed", async () => {
  let open = 0;
  const counted = <T extends { close(): Promise<void> }>(place: T): T => {
    open += 1;
    return {
      ...place,
      close() {
        open -= 1;
        return Promise.resolve();
      },
    };
  };
  const one = createDoctor({
    now: () => 0,
    openServer: () => counted(DEAD),
    openDatabase: () => counted(database({ diagnose: away })),
  });
  await one.detect({}, SIGNAL);
  await one.reachability({}, SIGNAL);
  await one.repair_trigger_reaper({}, SIGNAL);
  const misled = createDoctor({
    now: () => 0,
    openServer: () => counted(server()),
    openDatabase() {
      throw new FlowError("INVALID_INPUT", "no DSN");
    },
  });
  assert.equal((await misled.detect({ db_dsn: "x" }, SIGNAL)).severity, "error");
  assert.equal(open, 0);
});
