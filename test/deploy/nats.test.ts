import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { connect } from "nats";
import { parse } from "yaml";
import { packagePath } from "../../src/platform/system/package-file.ts";
import { startTestNats } from "../support/servers/nats-server.ts";
import { readManifests } from "./manifests.ts";

// The NATS of deploy/ takes its password from a variable: arguments are shown to everyone who may list processes.

interface ComposeService {
  command?: string[];
  environment?: Record<string, string>;
  volumes?: string[];
}

const compose = parse(readFileSync(packagePath("deploy/compose.yaml"), "utf8"), { merge: true }) as {
  services: Record<string, ComposeService>;
};
const manifests = readManifests().map(({ document }) => document);
const containers = manifests.flatMap(({ spec }) => spec?.template?.spec.containers ?? []);

/** Its configuration, and what its variable is for a password. */
const PLACES: Record<string, () => { args: unknown; configuration: string; variable(password: string): string }> = {
  compose() {
    const { command, environment, volumes } = compose.services["nats"] ?? {};
    assert.ok(volumes?.includes("./nats.conf:/etc/nats/nats.conf:ro"));
    return {
      args: command,
      configuration: readFileSync(packagePath("deploy/nats.conf"), "utf8"),
      variable: (password) => environment?.["NATS_PASSWORD"]?.replace(/\$\{NATS_PASSWORD:[^}]*\}/, password) ?? "",
    };
  },
  kubernetes() {
    const { args, env = [] } = containers.find(({ name }) => name === "nats") ?? {};
    const config = manifests.find(({ kind, metadata }) => kind === "ConfigMap" && metadata.name === "flow-nats");
    // A variable is put into those that come after it.
    assert.deepEqual([env[0]?.name, env[0]?.valueFrom?.secretKeyRef?.key], ["NATS_SECRET", "NATS_PASSWORD"]);
    const value = env.find(({ name }) => name === "NATS_PASSWORD")?.value;
    return {
      args,
      configuration: config?.data?.["nats.conf"] ?? "",
      variable: (password) => value?.replace("$(NATS_SECRET)", password) ?? "",
    };
  },
};

for (const [place, read] of Object.entries(PLACES)) {
  test(`${place}: NATS takes its password from the environment, whatever it begins with, and no other`, async () => {
    const { args, configuration, variable } = read();
    assert.deepEqual(args, ["--config=/etc/nats/nats.conf"]);
    for (const password of ["secret", "0123456789abcdef", "12345678901234567890", "5k", "1e5f", "true", "a-b_c.d~e"]) {
      const environment = { PATH: process.env["PATH"], NATS_PASSWORD: variable(password) };
      const server = await startTestNats({ configuration, environment });
      const address = `127.0.0.1:${server.port}`;
      const client = await connect({ servers: address, user: "flow", pass: password });
      const { limits } = await (await client.jetstreamManager()).getAccountInfo();
      assert.ok(limits, "JetStream is on");
      await client.close();
      for (const pass of [`${password}x`, variable(password), ""]) {
        const attempt = connect({ servers: address, user: "flow", pass, reconnect: false });
        await assert.rejects(attempt, { code: "AUTHORIZATION_VIOLATION" }, `${password}: ${pass}`);
      }
      await server.stop();
    }
  });
}

test("no argument of a container in deploy/ is made of a secret", () => {
  const args = [
    ...Object.values(compose.services).flatMap(({ command }) => command ?? []),
    ...containers.flatMap((container) => container.args ?? []),
  ];
  assert.ok(args.length > 10);
  assert.deepEqual(
    args.filter((text) => /\$|pass|secret|token/i.test(text)),
    [],
  );
});
