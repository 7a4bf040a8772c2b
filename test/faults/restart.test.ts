import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { findPostmaster } from "../../src/platform/postgres/postmaster-file.ts";
import { freePort } from "../support/servers/free-port.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { startServerProcess } from "../support/service/service-process.ts";
import { LONG, openStand } from "./support/stand.ts";
import { until } from "./support/until.ts";

/* Parts that are started again while others use them. */

test("the embedded PostgreSQL is started again when it dies, and health is not ok meanwhile", async (t) => {
  const folder = await folderWith(t, {});
  const server = await startServerProcess(t, { folder, environment: { FLOW_HOME: join(folder, "home") } });
  const health = async () => ((await (await fetch(`${server.url}/api/health`)).json()) as { status: string }).status;
  assert.equal(await health(), "ok");
  for (let round = 0; round < 2; round += 1) {
    const { pid } = (await findPostmaster(join(folder, "home/postgres/data"))) ?? {};
    assert.ok(pid !== undefined);
    process.kill(pid, "SIGKILL");
    await until("health says so", async () => (await health()) === "degraded");
    await until("it is there again", async () => (await health()) === "ok");
    assert.equal((await fetch(`${server.url}/api/catalog`)).status, 200);
  }
  assert.equal((await server.end("SIGTERM")).code, 0);
  assert.equal(await findPostmaster(join(folder, "home/postgres/data")), undefined);
});

test("servers are restarted one after the other: a caller that never retries misses nothing", async (t) => {
  const ports = [await freePort(), await freePort()];
  const stand = await openStand(t, { ...LONG, FLOW_LAME_DUCK_SECONDS: "1.5" });
  const servers = [await stand.server({}, ports[0]), await stand.server({}, ports[1])];
  const urls = servers.map(({ url }) => url);
  const client = await stand.client(...servers);
  // What a load balancer does: it asks for their health, and sends calls to those that are well.
  let well: readonly string[] = urls;
  let isOver = false;
  const looking = (async () => {
    while (!isOver) {
      const isWell = await Promise.all(
        urls.map((url) =>
          fetch(`${url}/api/health`).then(
            ({ status }) => status === 200,
            () => false,
          ),
        ),
      );
      well = urls.filter((_, index) => isWell[index]);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  })();
  const broken: string[] = [];
  let answered = 0;
  const calling = Array.from({ length: 8 }, async (_, index) => {
    for (let turn = index; !isOver; turn += 1) {
      const url = well[turn % well.length];
      const path = turn % 4 === 0 ? "/api/catalog" : "/api/executions?limit=1";
      await fetch(`${url}${path}`).then(
        async (response) => {
          await response.text();
          if (response.status !== 200) broken.push(`${response.status}`);
          answered += 1;
        },
        (error: Error) => broken.push(String(error.cause ?? error)),
      );
    }
  });
  for (const index of [0, 1]) {
    const old = servers[index];
    const ended = await old?.end("SIGTERM");
    assert.equal(ended?.code, 0);
    servers[index] = await stand.server({}, ports[index]);
    await until("it is well again", () => well.length === 2);
  }
  isOver = true;
  await Promise.all([looking, ...calling]);
  assert.deepEqual(broken, []);
  assert.ok(answered > 100, `${answered} calls were answered`);
  assert.equal((await client.call("GET", "/api/health")).body.status, "ok");
});
