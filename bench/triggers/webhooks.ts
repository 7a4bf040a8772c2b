import { createHmac, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";
import { type Measurement, quantile } from "../report/measurement.ts";
import { openLoop } from "../service/load.ts";
import { type OneServer, startOneServer } from "./one-server.ts";

const PER_SECOND = 500;
const SECONDS = 30;
const QUICK_SECONDS = 5;
/** Each may be called a hundred times a second. */
const HOOKS = 10;
/** So that the server's code is compiled. */
const WARM_SECONDS = 5;
const P99_MAX_MS = 50;
const CONNECTIONS = 128;
const SETTLE_MAX_MS = 60_000;

const SECRET = randomBytes(24).toString("hex");

/**
 * Deliveries of webhooks at a steady rate, each signed and of a key of its own: how long their answers take, which come when the start is
 * durable. Those that are not 2xx are counted; each of the others must have started one execution.
 */
export async function benchWebhooks(
  isQuick: boolean,
  log: (line: string) => void,
  profiles?: string,
): Promise<Measurement[]> {
  const seconds = isQuick ? QUICK_SECONDS : SECONDS;
  const server = await startOneServer(profiles === undefined ? undefined : { folder: profiles, name: "webhooks" });
  const pool = new Pool(server.url, { connections: CONNECTIONS });
  try {
    log(`  ${PER_SECOND} webhooks/s for ${seconds} s …`);
    await registerHooks(server);
    const sender = createSender(pool);
    await openLoop(PER_SECOND / 2, WARM_SECONDS, sender.send);
    const warm = sender.answers();
    const { latencies, overrun } = await openLoop(PER_SECOND, seconds, sender.send);
    const { ids, refused } = sender.answers();
    await assertStarted(server, ids);
    const name = (what: string) => `${PER_SECOND} webhooks/s for ${seconds} s: ${what}`;
    return [
      { name: name("answer, p50"), value: quantile(latencies, 0.5), unit: "ms" },
      { name: name("answer, p99"), value: quantile(latencies, 0.99), unit: "ms", target: P99_MAX_MS, better: "less" },
      { name: name("answer, latest"), value: quantile(latencies, 1), unit: "ms" },
      { name: name("refused"), value: refused - warm.refused, unit: "", target: 0, better: "less" },
      {
        name: name("answered"),
        value: overrun ? Number.NaN : ids.length - warm.ids.length,
        unit: "",
        target: PER_SECOND * seconds,
        better: "more",
      },
    ];
  } finally {
    await pool.destroy();
    await server.stop();
  }
}

async function registerHooks({ client }: OneServer): Promise<void> {
  const path = "bench/hooked";
  await client.post("/api/credentials", {
    name: "hook",
    type: "custom",
    data: { secret: SECRET },
    meta: { playbooks: [path] },
  });
  const hooks = Array.from(
    { length: HOOKS },
    (_, index) => `  - name: h${index}
    webhook:
      path: bench/${index}
      verify: { preset: github, secret: hook }
      when: "{{ body.ref == 'refs/heads/main' }}"
    input: { commit: "{{ body.after[:7] }}" }`,
  );
  await client.post("/api/catalog/register", {
    content: `apiVersion: flow/v2
kind: Playbook
metadata: { name: hooked, path: ${path} }
workload: { commit: "" }
triggers:
${hooks.join("\n")}
workflow:
  - { step: only, tool: { kind: noop, result: { commit: "{{ workload.commit }}" } } }
`,
  });
}

/** Sends deliveries as GitHub does, each to the next path. */
function createSender(pool: Pool) {
  const ids: string[] = [];
  let refused = 0;
  let sent = 0;
  return {
    async send() {
      const serial = sent++;
      const body = bodyOf(serial);
      const answer = await pool.request({
        method: "POST",
        path: `/hooks/bench/${serial % HOOKS}`,
        headers: {
          "content-type": "application/json",
          "x-github-event": "push",
          "x-github-delivery": `delivery-${serial}`,
          "x-hub-signature-256": `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`,
        },
        body,
      });
      const { execution_id: id } = (await answer.body.json()) as { execution_id?: string };
      if (answer.statusCode >= 300) refused += 1;
      else if (id !== undefined) ids.push(id);
    },
    answers: () => ({ ids: [...ids], refused }),
  };
}

/** Two kilobytes, as those of a small push are. */
function bodyOf(serial: number): string {
  const after = serial.toString(16).padStart(40, "0");
  const commits = Array.from({ length: 5 }, (_, index) => ({
    ...{ id: `${after.slice(1)}${index}`, message: `Change ${index} of ${serial}`, distinct: true },
    author: { name: "Ann", email: "ann@example.com", username: "ann" },
    ...{ added: ["src/new.ts"], removed: [], modified: ["src/main.ts", "test/main.test.ts"] },
  }));
  return JSON.stringify({ ref: "refs/heads/main", after, repository: { full_name: "acme/shop" }, commits });
}

/** Each id that was answered is an execution, one for each delivery, and there are no others. Throws otherwise. */
async function assertStarted({ sql }: OneServer, ids: readonly string[]): Promise<void> {
  if (new Set(ids).size < ids.length) throw new Error("Two deliveries were answered with one execution");
  for (const end = Date.now() + SETTLE_MAX_MS; ; await sleep(200)) {
    const [row] = await sql<[{ found: number; all: number; queued: number }]>`
      select (select count(*)::int from flow.execution where execution_id = any(${[...ids]}::bigint[])) as found,
        (select count(*)::int from flow.execution) as all,
        (select count(*)::int from flow.trigger_fire where status = 'queued') as queued`;
    if (row.queued > 0 && Date.now() < end) continue;
    const { found, all, queued } = row;
    if (found === ids.length && all === ids.length && queued === 0) return;
    throw new Error(
      `${ids.length} deliveries were answered, ${found} of them started, of ${all} executions; ${queued} wait`,
    );
  }
}
