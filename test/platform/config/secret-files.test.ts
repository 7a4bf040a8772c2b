import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { describeConfig, loadConfig, secretVariables } from "../../../src/platform/config/config.ts";

const folder = mkdtempSync(join(tmpdir(), "flow-secrets-"));
after(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

test("a secret is read from the file that its setting names, without the line break at its end", () => {
  const path = file("token", "from-a-file\n");
  const config = loadConfig({ FLOW_WORKER_TOKEN_FILE: path });
  assert.equal(config.workerToken?.reveal(), "from-a-file");
  assert.equal(config.environment["FLOW_WORKER_TOKEN"], "from-a-file");
  const report = describeConfig({ FLOW_WORKER_TOKEN_FILE: path }).find(({ name }) => name === "FLOW_WORKER_TOKEN");
  assert.deepEqual([report?.source, report?.value.includes("from-a-file")], ["environment", false]);
});

for (const [what, environment, message] of [
  ["a file that is missing", { FLOW_SERVER_TOKEN_FILE: join(folder, "absent") }, /FLOW_SERVER_TOKEN_FILE: cannot read/],
  ["an empty file", { FLOW_SERVER_TOKEN_FILE: file("empty", " \n") }, /FLOW_SERVER_TOKEN_FILE: .* is empty/],
  ["a file that is no secret", { FLOW_SERVER_TOKEN_FILE: file("long", "x".repeat(65_537)) }, /longer than a secret/],
  [
    "a file beside a value",
    { FLOW_SERVER_TOKEN_FILE: file("both", "x"), FLOW_SERVER_TOKEN: "y" },
    /FLOW_SERVER_TOKEN and FLOW_SERVER_TOKEN_FILE are both set/,
  ],
] as const) {
  test(`${what} is refused by name`, () => {
    assert.throws(() => loadConfig(environment), { code: "INVALID_SETTING", message });
  });
}

test("the keys' file keeps its own meaning, a setting without secrets has no file, and an empty path is none", () => {
  const config = loadConfig({
    FLOW_ENCRYPTION_KEYS_FILE: "/absent",
    FLOW_WORKER_NAME_FILE: "/absent",
    FLOW_SERVER_TOKEN_FILE: " ",
  });
  assert.deepEqual([config.encryptionKeys, config.encryptionKeysFile], [undefined, "/absent"]);
});

test("secrets of an environment are its secret settings and the values of credentials", () => {
  const environment = {
    PATH: "/bin",
    FLOW_SERVER_TOKEN: "a",
    FLOW_CREDENTIAL_PG: "{}",
    FLOW_HOST: "b",
    BROKER_URL: "c",
  };
  assert.deepEqual(secretVariables(environment), ["FLOW_SERVER_TOKEN", "FLOW_CREDENTIAL_PG", "BROKER_URL"]);
});
