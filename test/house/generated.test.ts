import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { DIAGNOSTICS_PAGE, diagnosticsPage } from "../../docs/generate.ts";
import { PERMISSIONS_PAGE, permissionsPage } from "../../docs/permissions.ts";

test("docs/diagnostics.md lists exactly the codes of the loader", () => {
  assert.equal(readFileSync(DIAGNOSTICS_PAGE, "utf8"), diagnosticsPage(), "run `npm run generate`");
});

test("docs/permissions.md lists exactly the existing routes, as in their contracts", () => {
  assert.equal(readFileSync(PERMISSIONS_PAGE, "utf8"), permissionsPage(), "run `npm run generate`");
});
