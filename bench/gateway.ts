import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { createInterface } from "node:readline";
import { Pool } from "undici";
import { newToken } from "../src/platform/crypto/token.ts";
import type { MeAnswer } from "../src/schema/api/auth.ts";
import { startChild } from "./candidates/child.ts";
import type { Measurement } from "./report/measurement.ts";

/** Sessions that are validated in turn, and calls under way at a time. */
const SESSIONS = 1_000;
const CALLERS = 64;
const WARM_MS = 1_000;
/** Each session is known to the gateway then, and its code is compiled. */
const WARM_CALLS = 5 * SESSIONS;
const RUN_MS = 4_000;
/** Of the kernel's clock ticks there are so many in a second, on every Linux. */
const TICKS_PER_SECOND = 100;

/**
 * Validations of sessions by a gateway's cache, and calls passed on: the gateway is a separate process, the server behind it
 * does nothing. The callers are in this process and take about as much of the machine as the gateway does.
 */
export async function benchGateway(): Promise<Measurement[]> {
  const server = await startIdleServer();
  const main = join(import.meta.dirname, "../src/main.js");
  const environment = { FLOW_BASE_URL: server.url, FLOW_GATEWAY_INTERNAL_PORT: "0", FLOW_LOG_LEVEL: "warn" };
  const gateway = startChild(process.execPath, [main, "serve", "--role", "gateway", "--port", "0"], {
    cwd: tmpdir(),
    env: { ...process.env, ...environment },
  });
  const url = await gateway.before("starting", readyUrl(gateway.process.stdout));
  const pool = new Pool(url, { connections: CALLERS });
  try {
    const pid = gateway.process.pid ?? 0;
    const validations = await load(pool, "/api/auth/session", pid);
    const passed = await load(pool, "/flow/executions", pid);
    return [
      {
        name: "B10 sessions validated by the gateway",
        value: validations.rate,
        unit: "/s",
        target: 5_000,
        better: "more",
      },
      { name: "   CPU of the gateway for one", value: validations.cpuUs, unit: "µs" },
      { name: "   calls passed on by the gateway", value: passed.rate, unit: "/s" },
      { name: "   CPU of the gateway for one", value: passed.cpuUs, unit: "µs" },
    ];
  } finally {
    await pool.destroy();
    await gateway.stop();
    server.close();
  }
}

async function load(pool: Pool, path: string, pid: number): Promise<{ rate: number; cpuUs: number }> {
  const headers = Array.from({ length: SESSIONS }, () => ({ authorization: `Bearer ${newToken()}` }));
  let calls = 0;
  const until = async (isOver: () => boolean) => {
    while (!isOver()) {
      const answer = await pool.request({ method: "GET", path, headers: headers[calls % SESSIONS] ?? {} });
      if (answer.statusCode !== 200) throw new Error(`${path} gave ${answer.statusCode}: ${await answer.body.text()}`);
      await answer.body.dump();
      calls += 1;
    }
  };
  const run = (ms: number, callsMin = 0) => {
    const end = performance.now() + ms;
    return Promise.all(
      Array.from({ length: CALLERS }, () => until(() => performance.now() >= end && calls >= callsMin)),
    );
  };
  // On a busy machine a second is not enough for every session to be asked for once.
  await run(WARM_MS, WARM_CALLS);
  calls = 0;
  const [began, cpu] = [performance.now(), await cpuSeconds(pid)];
  await run(RUN_MS);
  const seconds = (performance.now() - began) / 1_000;
  return { rate: calls / seconds, cpuUs: (((await cpuSeconds(pid)) - cpu) * 1e6) / calls };
}

/** CPU time of a process; NaN where there is no /proc. */
async function cpuSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11] ?? Number.NaN) + Number(fields[12] ?? Number.NaN)) / TICKS_PER_SECOND;
}

/** A server that accepts every session and does nothing. */
async function startIdleServer(): Promise<{ url: string; close(): void }> {
  const expires = new Date(Date.now() + 3_600_000).toISOString();
  const user = { user_id: 1, email: "ada@example.com", display_name: "Ada", roles: ["viewer"] };
  // Typed, so that a field that the answer gets does not leave the gateway with a server that it cannot understand.
  const answer: MeAnswer = { kind: "user", ...user, permissions: [], actions: ["view"], expires_at: expires };
  const me = JSON.stringify(answer);
  const server = createServer((request, response) => {
    if (request.url === "/api/auth/changes") {
      response.writeHead(200, { "content-type": "text/event-stream" }).write('data: {"all":true}\n\n');
      return;
    }
    response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(me) }).end(me);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

async function readyUrl(output: NodeJS.ReadableStream | null): Promise<string> {
  if (output === null) throw new Error("the gateway has no output");
  for await (const line of createInterface({ input: output })) {
    const url = /ready at (http:\/\/[^\s,]+)/.exec(line)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error("the gateway ended before it was ready");
}
