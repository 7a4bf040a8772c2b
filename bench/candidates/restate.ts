import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { arch, platform, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { request } from "undici";
import { inheritedEnvironment } from "../../src/platform/config/config.ts";
import { freePort } from "../../test/support/servers/free-port.ts";
import type { Candidate } from "./candidate.ts";
import { startChild } from "./child.ts";
import { forkPeer } from "./forked-peer.ts";
import { openClient } from "./http-client.ts";
import { PEERS } from "./install-peers.ts";

/**
 * Restate: its server, with its own durable log, and a process with the workflows that the server calls. A request to the
 * server's ingress is answered with the result.
 */
export async function startRestate(): Promise<Candidate> {
  const folder = await mkdtemp(join(tmpdir(), "flow-bench-restate-"));
  const [ingress, admin, fabric] = [await freePort(), await freePort(), await freePort()];
  const server = startChild(serverProgram(), ["--no-logo", "--base-dir", folder, "--node-name", "bench"], {
    env: {
      ...inheritedEnvironment(),
      DO_NOT_TRACK: "1",
      RESTATE_DISABLE_TELEMETRY: "true",
      RESTATE_LISTEN_MODE: "tcp",
      RESTATE_LOG_FILTER: "error",
      RESTATE_BIND_ADDRESS: `127.0.0.1:${fabric}`,
      RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
      RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
    },
  });
  const { child: endpoint, ready } = await forkPeer<{ port: number }>("restate.mjs", []);
  await server.before("does not take its workflows", register(admin, ready.port));
  const client = openClient(`http://127.0.0.1:${ingress}`);
  return {
    name: "Restate",
    run: async ({ kind, ...input }) => void (await client.post(`/bench/${kind}`, input)),
    stop: async () => {
      await client.close();
      await Promise.all([server.stop(), endpoint.stop()]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The server is in a package for this system alone. */
function serverProgram(): string {
  const name = `@restatedev/restate-server-${platform()}-${arch()}/bin/restate-server`;
  return createRequire(join(PEERS, "package.json")).resolve(name);
}

const POLL_MS = 100;

/** Registers the workflows with the server, which refuses until it is up and its parts have found each other. */
async function register(admin: number, port: number): Promise<void> {
  for (;;) {
    const answer = await request(`http://127.0.0.1:${admin}/deployments`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ uri: `http://127.0.0.1:${port}` }),
    }).catch(() => undefined);
    await answer?.body.dump();
    if (answer !== undefined && answer.statusCode < 300) return;
    await sleep(POLL_MS);
  }
}
