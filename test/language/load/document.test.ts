import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, it } from "node:test";
import { loadPlaybook } from "../../../src/language/load/load.ts";

/** A file of test/fixtures; compiled tests stand one folder deeper than their sources. */
function fixture(name: string): URL {
  return new URL(`../../../../test/fixtures/${name}`, import.meta.url);
}

describe("a document with every form", () => {
  const loaded = loadPlaybook(readFileSync(fixture("all-forms.yaml")), "all-forms.yaml");

  it("has no problem", () => assert.deepEqual(loaded.diagnostics, []));

  // To renew the expectation after a change that is meant: UPDATE_FIXTURES=1 npm test, then read the difference.
  it("is normalised to the expected JSON, positions included", () => {
    const expected = fixture("all-forms.json");
    if (process.env["UPDATE_FIXTURES"] === "1")
      writeFileSync(expected, `${JSON.stringify(loaded.playbook, null, 2)}\n`);
    assert.deepEqual(loaded.playbook, JSON.parse(readFileSync(expected, "utf8")));
  });

  it("is plain JSON: nothing is lost when it is stored", () => {
    assert.deepEqual(JSON.parse(JSON.stringify(loaded.playbook)), loaded.playbook);
  });

  it("means the same with carriage returns and a byte order mark", () => {
    const text = readFileSync(fixture("all-forms.yaml"), "utf8");
    const windows = loadPlaybook(`\uFEFF${text.replaceAll("\n", "\r\n")}`, "all-forms.yaml");
    assert.deepEqual(windows, loaded);
    assert.deepEqual(loadPlaybook(new TextEncoder().encode(`\uFEFF${text}`), "all-forms.yaml"), loaded);
  });
});
