import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { packagePath } from "../../src/platform/system/package-file.ts";
import { createTestDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { copiesOf, last, readStages } from "./dockerfile.ts";
import { runProgram, serveProgram } from "./installed-program.ts";
import { PROBED, unknownSettings } from "./settings.ts";

/*
 * The image without building it: what its Dockerfile says, and its files put together as the Dockerfile does, run with no
 * package beside them. What a build alone would show (base image, Debian's packages) is not tested here.
 */

const stages = readStages();
const [build = [], image = []] = stages;

test("the Dockerfile has two stages of instructions that exist, on a pinned line of Node that the program supports", () => {
  assert.equal(stages.length, 2);
  const known = [
    "FROM",
    "WORKDIR",
    "COPY",
    "RUN",
    "ENV",
    "USER",
    "EXPOSE",
    "STOPSIGNAL",
    "HEALTHCHECK",
    "ENTRYPOINT",
    "CMD",
  ];
  assert.deepEqual(
    [...build, ...image].filter(({ name }) => !known.includes(name)),
    [],
  );
  assert.deepEqual(
    stages.map((stage) => last(stage, "FROM")),
    ["node:${NODE} AS build", "node:${NODE}"],
  );
  const version = /^ARG NODE=(\d+)-bookworm-slim@sha256:[0-9a-f]{64}$/m.exec(
    readFileSync(packagePath("Dockerfile"), "utf8"),
  )?.[1];
  assert.ok(Number(version) >= 22);
});

test("the image starts any role as a user without rights, and stops by SIGTERM", () => {
  assert.deepEqual(JSON.parse(last(image, "ENTRYPOINT")), ["flow"]);
  assert.deepEqual(JSON.parse(last(image, "CMD")), ["serve"]);
  assert.match(last(image, "USER"), /^[1-9]\d*:[1-9]\d*$/);
  assert.equal(last(image, "STOPSIGNAL"), "SIGTERM");
  assert.deepEqual(
    last(image, "EXPOSE").split(" ").map(Number),
    Object.values(PROBED).map(({ port }) => port),
  );
  const environment = last(image, "ENV")
    .split(" ")
    .map((pair) => pair.split("=")[0] ?? "");
  assert.deepEqual(unknownSettings(environment), []);
});

test("a build sees what the Dockerfile copies and nothing else", () => {
  const lines = readFileSync(packagePath(".dockerignore"), "utf8")
    .split("\n")
    .filter((line) => /^[^#]/.test(line));
  const copied = [...copiesOf(build), ...copiesOf(image)].flatMap(({ from, sources }) => (from ? [] : sources));
  for (const source of copied) assert.ok(existsSync(packagePath(source)), `${source} is not there`);
  const wanted = new Set(
    copied.filter((source) => source !== "bin/flow.js").map((source) => `!${source.replace("./", "")}`),
  );
  assert.deepEqual(lines.toSorted(), ["*", ...wanted].toSorted());
});

test("no package gets into the image but in the bundle", () => {
  const installs = [...build, ...image].filter(({ name, text }) => name === "RUN" && /\bnpm\b/.test(text));
  assert.deepEqual(
    installs.map(({ text }) => text),
    ["npm ci --ignore-scripts --no-audit --no-fund"],
  );
  assert.ok(!copiesOf(image).some(({ sources }) => sources.some((source) => source.includes("node_modules"))));
});

const root = mkdtempSync(join(tmpdir(), "flow-image-"));
const flow = [process.execPath, join(root, "bin/flow.js")];
const { PATH } = process.env;
after(() => rmSync(root, { recursive: true }));

before(() => {
  for (const { from, sources, target } of copiesOf(image)) {
    for (const source of sources) {
      const origin = packagePath(from === undefined ? source : source.replace("/build/", ""));
      const place = target.endsWith("/") ? join(root, target, basename(source)) : join(root, target);
      mkdirSync(join(place, ".."), { recursive: true });
      // As the build stage does, without the maps.
      cpSync(origin, place, { recursive: true, filter: (file) => !file.endsWith(".map") });
    }
  }
});

test("the image's files are a program that runs playbooks", async (t) => {
  assert.ok(!readdirSync(root).includes("node_modules"));
  const folder = await folderWith(t, {});
  const version = await runProgram([...flow, "--version"], folder, { PATH });
  assert.deepEqual([version.code, version.stderr], [0, ""]);
  const run = await runProgram([...flow, "run", packagePath("playbooks/examples/hello.yaml"), "--json"], folder, {
    PATH,
  });
  assert.equal((JSON.parse(run.stdout) as { status: string }).status, "COMPLETED", run.stderr);
});

test("the image's files serve on a given database, and its health check reports whether they do", async (t) => {
  const folder = await folderWith(t, {});
  const { url: databaseUrl } = await createTestDatabase();
  const environment = { PATH, ...ownDatabase(databaseUrl) };
  const serving = await serveProgram(t, [...flow, "serve", "--role=server", "--port=0"], folder, environment);
  assert.match(await (await fetch(`${serving.url}/executions`)).text(), /<title>flow<\/title>/, "and the page");
  const [, ...check] = JSON.parse(last(image, "HEALTHCHECK").replace(/^.* CMD /, "")) as string[];
  const look = () =>
    runProgram([process.execPath, ...check], folder, { PATH, FLOW_SERVER_PORT: new URL(serving.url).port });
  assert.equal((await look()).code, 0);
  assert.equal((await serving.stop()).code, 0);
  assert.equal((await look()).code, 1);
});

test("without a database the image's server says what to set", async (t) => {
  const folder = await folderWith(t, {});
  const { code, stderr } = await runProgram([...flow, "serve", "--role=server", "--port=0"], folder, { PATH });
  assert.equal(code, 1);
  assert.match(stderr, /There is no embedded PostgreSQL.*set FLOW_DATABASE_URL/);
});

test("beyond loopback without tokens the image's server does not start", async (t) => {
  const folder = await folderWith(t, {});
  const environment = { PATH, FLOW_HOST: "0.0.0.0", ...ownDatabase("postgres://flow:flow@127.0.0.1:1/flow") };
  const { code, stderr } = await runProgram([...flow, "serve", "--role=server"], folder, environment);
  assert.equal(code, 2);
  assert.match(stderr, /Refused to listen on 0\.0\.0\.0 without tokens/);
});
