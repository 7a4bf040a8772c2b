import assert from "node:assert/strict";
import { test } from "node:test";
import { describeConfig, loadConfig } from "../../../src/platform/config/config.ts";
import { encryptionKeys } from "../../support/engine/key-ring.ts";

test("without settings there is no key, the audit log is kept for a year, and statements of operators are bounded", () => {
  const config = loadConfig({});
  assert.deepEqual([config.encryptionKeys, config.encryptionKeysFile, config.auditDays], [undefined, undefined, 365]);
  assert.deepEqual([config.sqlExecuteMs, config.sqlExecuteRowsMax, config.sqlExecuteOwn], [30_000, 1_000, false]);
});

test("keys are read, and shown nowhere", () => {
  const keys = encryptionKeys("k2", "k1");
  const config = loadConfig({ FLOW_ENCRYPTION_KEYS: keys, FLOW_SQLDB_EXECUTE_CATALOG: "TRUE" });
  assert.equal(config.encryptionKeys?.reveal(), keys);
  assert.equal(config.sqlExecuteOwn, true);
  const described = describeConfig({ FLOW_ENCRYPTION_KEYS: keys });
  const shown = JSON.stringify([config.encryptionKeys, described]);
  for (const part of keys.split(/[:,]/).filter((text) => text.length > 10)) assert.ok(!shown.includes(part));
});

for (const [name, text, message] of [
  ["FLOW_ENCRYPTION_KEYS", "canary", /FLOW_ENCRYPTION_KEYS: key 1 is not of the form/],
  ["FLOW_AUDIT_DAYS", "0", /whole number from 1/],
  ["FLOW_SQLDB_EXECUTE_TIMEOUT_SECONDS", "soon", /number of seconds/],
  ["FLOW_SQLDB_EXECUTE_ROWS_MAX", "1000000", /from 1 to 100000/],
  ["FLOW_SQLDB_EXECUTE_CATALOG", "yes", /true or false/],
] as const) {
  test(`${name}=${text} is refused`, () => {
    assert.throws(
      () => loadConfig({ [name]: text }),
      (error: Error) => message.test(error.message) && !error.message.includes("canary"),
    );
  });
}
