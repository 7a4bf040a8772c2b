import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "../../../src/platform/config/config.ts";

test("the first administrators are addresses in lower case, none by default", () => {
  assert.deepEqual(loadConfig({}).adminEmails, []);
  const { adminEmails } = loadConfig({ FLOW_ADMIN_EMAILS: " Root@Example.com, ada@example.com ,," });
  assert.deepEqual(adminEmails, ["root@example.com", "ada@example.com"]);
  assert.ok(Object.isFrozen(adminEmails));
});

for (const text of ["root", "@example.com", "root@", "a b@example.com", "root@example.com ada@example.com", "**"]) {
  test(`FLOW_ADMIN_EMAILS=${text} is refused`, () => {
    assert.throws(() => loadConfig({ FLOW_ADMIN_EMAILS: text }), /FLOW_ADMIN_EMAILS: '.*' is no e-mail address/);
  });
}
