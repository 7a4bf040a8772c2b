import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { DIAGNOSTICS_PAGE, diagnosticsPage } from "../../docs/generate.ts";

test("docs/diagnostics.md lists exactly the codes of the loader", () => {
  assert.equal(readFileSync(DIAGNOSTICS_PAGE, "utf8"), diagnosticsPage(), "run `npm run generate`");
});
