import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parseEnv } from "node:util";
import { parse } from "yaml";
import { packagePath } from "../../src/platform/system/package-file.ts";
import { ROLES } from "../../src/roles/start-role.ts";
import { ROUTES } from "../../src/schema/routes/all.ts";
import { type Container, manifestFiles, type PodSpec, readKustomization, readManifests } from "./manifests.ts";
import { CALLBACK_PORT, filledIn, PROBED, readSettings, unknownSettings } from "./settings.ts";

const manifests = readManifests();
const documents = manifests.map(({ document }) => document);

/** Every pod that the manifests make, by the name of what makes it. */
const pods = new Map<string, PodSpec>();
for (const { metadata, spec } of documents) if (spec?.template) pods.set(metadata.name, spec.template.spec);

function containerOf(role: string): Container {
  const container = pods.get(`flow-${role}`)?.containers[0];
  assert.ok(container, `there is no pod of the role ${role}`);
  return container;
}

function named(kind: string, name: string) {
  return documents.find((document) => document.kind === kind && document.metadata.name === name);
}

test("every environment variable of a container is a setting that something reads", () => {
  const set = [...pods.values()].flatMap(({ containers }) => containers.flatMap(({ env }) => env ?? []));
  const configured = Object.keys(named("ConfigMap", "flow")?.data ?? {});
  assert.deepEqual(unknownSettings([...set.map(({ name }) => name), ...configured]), []);
});

test("every role takes its settings as they are", () => {
  for (const role of ["server", "worker", "gateway", "doctor"]) {
    const own: Record<string, string> = {};
    for (const { name, value } of containerOf(role).env ?? []) {
      own[name] = value?.replace(/\$\((\w+)\)/g, (_, other: string) => own[other] ?? "") ?? filledIn(name);
    }
    readSettings({ ...named("ConfigMap", "flow")?.data, ...own }, role);
  }
});

test("every secret that a container uses is in both examples, and every listed secret is used", () => {
  const asked = (names: Iterable<string>) =>
    [...names].flatMap((name) =>
      (pods.get(name)?.containers ?? []).flatMap(
        ({ env }) => env?.map(({ valueFrom }) => valueFrom?.secretKeyRef?.key) ?? [],
      ),
    );
  const sorted = (keys: Iterable<string | undefined>) => [...new Set(keys)].filter((key) => key !== undefined).sort();
  const trial = parseEnv(readFileSync(packagePath("deploy/kubernetes/trial/secret.env.example"), "utf8"));
  assert.deepEqual(sorted(Object.keys(trial)), sorted(asked(pods.keys())));
  const base = Object.keys(named("Secret", "flow")?.stringData ?? {});
  assert.deepEqual(
    sorted(base),
    sorted(asked(["server", "worker", "gateway", "doctor"].map((role) => `flow-${role}`))),
  );
});

test("a worker gets its own token and no other secret", () => {
  const secrets = containerOf("worker").env?.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef?.key ?? []);
  assert.deepEqual(secrets, ["FLOW_WORKER_TOKEN"]);
});

test("roles are started by names that the program knows", () => {
  for (const role of ["server", "worker", "gateway", "doctor"]) {
    assert.deepEqual(containerOf(role).args, ["serve", `--role=${role}`]);
    assert.ok(ROLES.some((name) => name === role));
  }
});

test("every role has replicas, and what must not stand still has two", () => {
  const replicas = ["server", "worker", "gateway", "doctor"].map(
    (role) => named("Deployment", `flow-${role}`)?.spec?.replicas,
  );
  assert.deepEqual(replicas, [2, 2, 2, 1]);
});

test("ports agree: the setting's default, the container's, the service's", () => {
  for (const [role, { port }] of Object.entries(PROBED)) {
    assert.deepEqual(containerOf(role).ports?.[0], { name: "http", containerPort: port });
    assert.equal(named("Service", `flow-${role}`)?.spec?.ports?.[0]?.targetPort, "http");
  }
  assert.equal(named("Service", "flow-server")?.spec?.ports?.[0]?.port, PROBED.server.port);
});

test("callbacks reach the very pod that waits, from workers alone, and no Service leads there", () => {
  const { ports, env } = containerOf("gateway");
  assert.deepEqual(ports?.[1], { name: "callbacks", containerPort: CALLBACK_PORT });
  const told = env?.find(({ name }) => name === "FLOW_GATEWAY_INTERNAL_URL");
  assert.equal(told?.value, `http://$(POD_IP):${CALLBACK_PORT}`);
  const made = env?.map(({ name }) => name) ?? [];
  assert.ok(made.indexOf("POD_IP") < made.indexOf("FLOW_GATEWAY_INTERNAL_URL"), "a variable is made of earlier ones");
  const led = documents.flatMap(({ kind, spec }) => (kind === "Service" ? (spec?.ports ?? []) : []));
  assert.ok(!led.some(({ targetPort }) => targetPort === "callbacks" || targetPort === CALLBACK_PORT));
  const policy = named("NetworkPolicy", "flow-gateway")?.spec;
  assert.deepEqual(policy?.podSelector, named("Deployment", "flow-gateway")?.spec?.selector);
  const rules = policy?.ingress?.map(({ ports, from }) => [ports[0]?.port, from?.[0]?.podSelector.matchLabels]);
  const servers = named("Deployment", "flow-server")?.spec?.template?.metadata.labels;
  assert.deepEqual(rules, [
    ["http", undefined],
    ["callbacks", servers],
  ]);
});

test("only the server has the key, and only server and doctor the database", () => {
  const askers = (setting: string) =>
    ["server", "worker", "gateway", "doctor"].filter((role) =>
      containerOf(role).env?.some(({ valueFrom }) => valueFrom?.secretKeyRef?.key === setting),
    );
  assert.deepEqual(askers("FLOW_ENCRYPTION_KEYS"), ["server"]);
  assert.deepEqual(askers("FLOW_DATABASE_URL"), ["server", "doctor"]);
});

test("authentication is on", () => {
  const { env } = containerOf("gateway");
  assert.equal(env?.find(({ name }) => name === "GATEWAY_AUTH_BYPASS")?.value, "false");
  const names = [...pods.values()].flatMap(({ containers }) => containers.flatMap(({ env }) => env ?? []));
  assert.ok(!names.some(({ name }) => ["FLOW_AUTH_DISABLED", "FLOW_GATEWAY_AUTH_BYPASS_ANYWHERE"].includes(name)));
});

test("addresses in the configuration and the trial's secrets are services of these manifests", () => {
  const trial = parseEnv(readFileSync(packagePath("deploy/kubernetes/trial/secret.env.example"), "utf8"));
  const settings = { ...named("ConfigMap", "flow")?.data, ...trial };
  for (const name of ["FLOW_SERVER_URL", "FLOW_BASE_URL", "FLOW_DATABASE_URL", "BROKER_URL"]) {
    const { hostname, port } = new URL(settings[name] ?? "");
    assert.equal(named("Service", hostname)?.spec?.ports?.[0]?.port, Number(port), name);
  }
});

test("probes ask routes that are open without a token", () => {
  const open = ROUTES.filter(({ method, access }) => method === "get" && access === "anonymous");
  assert.ok(open.some(({ path }) => path === PROBED.server.path));
  for (const [role, { path }] of Object.entries(PROBED)) {
    const { startupProbe, readinessProbe, livenessProbe } = containerOf(role);
    for (const probe of [readinessProbe, livenessProbe, ...(role === "server" ? [startupProbe] : [])])
      assert.deepEqual(probe?.httpGet, { path, port: "http" }, role);
  }
});

test("a worker is killed later than its drain ends", () => {
  const drain = containerOf("worker").env?.find(({ name }) => name === "FLOW_WORKER_DRAIN_SECONDS")?.value;
  assert.ok((pods.get("flow-worker")?.terminationGracePeriodSeconds ?? 0) >= Number(drain) + 20);
});

test("no pod runs as root, writes its image, or holds a token of the cluster", () => {
  assert.equal(pods.size, 6);
  for (const [name, pod] of pods) {
    assert.equal(pod.securityContext?.runAsNonRoot, true, name);
    assert.equal(pod.automountServiceAccountToken, false, name);
    for (const { securityContext } of pod.containers) {
      const { allowPrivilegeEscalation, readOnlyRootFilesystem, capabilities } = securityContext ?? {};
      assert.deepEqual([allowPrivilegeEscalation, readOnlyRootFilesystem], [false, true], name);
      assert.deepEqual(capabilities, { drop: ["ALL"] }, name);
    }
  }
});

// A Service named flow-server would set FLOW_SERVER_PORT=tcp://10.0.0.1:8082 in every pod, and no role would start.
test("no pod gets the cluster's variables for services, whose names are those of settings", () => {
  for (const [name, pod] of pods) assert.equal(pod.enableServiceLinks, false, name);
});

test("every manifest is in its kustomization, the example of a secret is in none", () => {
  for (const folder of ["base", "trial"] as const) {
    const files = manifestFiles(folder).filter((name) => !["kustomization.yaml", "secret.example.yaml"].includes(name));
    const { resources } = readKustomization(folder);
    assert.deepEqual(resources.filter((name) => name !== "../base").sort(), files);
  }
});

test("kustomizations have no field that kustomize does not know", () => {
  const known = ["namespace", "resources", "images", "replicas", "patches", "secretGenerator", "generatorOptions"];
  for (const folder of ["base", "trial"] as const) {
    const { apiVersion, kind, ...rest } = readKustomization(folder);
    assert.deepEqual([apiVersion, kind], ["kustomize.config.k8s.io/v1beta1", "Kustomization"]);
    assert.deepEqual(
      Object.keys(rest).filter((key) => !known.includes(key)),
      [],
    );
  }
});

test("the component for sandboxes adds user namespaces to workers, and takes nothing from what keeps them in bounds", () => {
  const component = parse(readFileSync(packagePath("deploy/kubernetes/sandbox/kustomization.yaml"), "utf8")) as {
    kind: string;
    patches: { target: { kind: string; name: string }; patch: string }[];
  };
  assert.equal(component.kind, "Component");
  const [{ target, patch }] = component.patches as [(typeof component.patches)[number]];
  assert.deepEqual(target, { kind: "Deployment", name: "flow-worker" });
  const { spec } = parse(patch) as { spec: { template: { spec: Record<string, unknown> } } };
  const { hostUsers, containers, securityContext } = spec.template.spec;
  assert.equal(hostUsers, false);
  assert.deepEqual(securityContext, {
    seccompProfile: { type: "Localhost", localhostProfile: "flow-worker.json" },
    appArmorProfile: { type: "Unconfined" },
  });
  assert.deepEqual(containers, [
    {
      name: containerOf("worker").name,
      securityContext: { procMount: "Unmasked" },
      env: [{ name: "FLOW_TASK_ISOLATION", value: "strict" }],
    },
  ]);
});
