import { setTimeout as sleep } from "node:timers/promises";
import { type Measurement, quantile } from "../report/measurement.ts";
import { type OneServer, startOneServer } from "./one-server.ts";

/** Schedules that are due at one minute; in a `--quick` run fewer. */
const SCHEDULES = 10_000;
const QUICK_SCHEDULES = 1_000;
/** As many as a document may have. */
const PER_PLAYBOOK = 100;
/** Registering one document takes less, on a busy machine too. */
const PER_DOCUMENT_MS = 1_000;
/** The last of them has started by then (issue: within ten seconds). */
const LATE_MAX_MS = 10_000;
const GIVE_UP_MS = 180_000;
const MINUTE_MS = 60_000;

/** How late executions start whose schedules are due at one minute: from that minute to the commit that makes their first event durable. */
export async function benchSchedules(
  isQuick: boolean,
  log: (line: string) => void,
  profiles?: string,
): Promise<Measurement[]> {
  const count = isQuick ? QUICK_SCHEDULES : SCHEDULES;
  const server = await startOneServer(profiles === undefined ? undefined : { folder: profiles, name: "schedules" });
  try {
    log(`  ${count} schedules …`);
    const due = await registerSchedules(server, count);
    await sleep(due - Date.now());
    const late = await lateStarts(server, { due, count });
    const name = (what: string) => `${count} schedules due at one minute: late, ${what}`;
    return [
      { name: name("p50"), value: quantile(late, 0.5), unit: "ms" },
      { name: name("p99"), value: quantile(late, 0.99), unit: "ms" },
      { name: name("latest"), value: quantile(late, 1), unit: "ms", target: LATE_MAX_MS, better: "less" },
    ];
  } finally {
    await server.stop();
  }
}

/** Registers so many, all due at one minute, and gives that minute, in milliseconds since 1970. */
async function registerSchedules({ client }: OneServer, count: number): Promise<number> {
  const documents = count / PER_PLAYBOOK;
  const due = Math.ceil((Date.now() + documents * PER_DOCUMENT_MS + 5_000) / MINUTE_MS) * MINUTE_MS;
  const at = new Date(due);
  const cron = `${at.getUTCMinutes()} ${at.getUTCHours()} ${at.getUTCDate()} ${at.getUTCMonth() + 1} *`;
  for (let document = 0; document < documents; document += 1) {
    const triggers = Array.from(
      { length: PER_PLAYBOOK },
      (_, index) => `  - { name: t${index}, schedule: { cron: "${cron}" } }`,
    );
    const content = `apiVersion: flow/v2
kind: Playbook
metadata: { name: scheduled-${document}, path: bench/scheduled-${document} }
triggers:
${triggers.join("\n")}
workflow:
  - { step: only, tool: { kind: noop, result: { ok: true } } }
`;
    await client.post("/api/catalog/register", { content });
  }
  if (Date.now() > due) throw new Error("The machine is too slow: schedules were due before all of them were there");
  return due;
}

/** By how much each has started late, ms, by the database's clock. Throws where one has not started, or twice. */
async function lateStarts({ sql }: OneServer, { due, count }: { due: number; count: number }): Promise<number[]> {
  for (const end = Date.now() + GIVE_UP_MS; Date.now() < end; await sleep(500)) {
    const rows = await sql<{ trigger: string; late: number }[]>`
      select started_id::text as trigger, extract(epoch from started_at)::float8 * 1000 - ${due}::float8 as late
      from flow.execution where started_kind = 'trigger'`;
    if (rows.length < count) continue;
    const triggers = new Set(rows.map(({ trigger }) => trigger));
    if (rows.length > count || triggers.size < count)
      throw new Error(`${count} schedules started ${rows.length} executions, of ${triggers.size} triggers`);
    return rows.map(({ late }) => late);
  }
  throw new Error(`Some of ${count} schedules have not started within ${GIVE_UP_MS / 1_000} s`);
}
