import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "../../../src/platform/config/config.ts";

test("without settings DuckDB may use every file and a gigabyte", () => {
  const { duckdbFiles, duckdbMemory } = loadConfig({});
  assert.deepEqual({ duckdbFiles, duckdbMemory }, { duckdbFiles: "all", duckdbMemory: "1GB" });
});

test("folders are a list, empty by default", () => {
  assert.deepEqual(loadConfig({ FLOW_DUCKDB_FILES: " /data, /srv/lake ," }).duckdbFiles, ["/data", "/srv/lake"]);
  assert.deepEqual(loadConfig({ FLOW_DUCKDB_FILES: "none" }).duckdbFiles, []);
  assert.equal(loadConfig({ FLOW_DUCKDB_FILES: "all" }).duckdbFiles, "all");
});

test("memory that is no size is refused", () => {
  assert.equal(loadConfig({ FLOW_DUCKDB_MEMORY: "512 MiB" }).duckdbMemory, "512 MiB");
  for (const text of ["much", "1", "-1GB", "1GB; select 1"]) {
    assert.throws(() => loadConfig({ FLOW_DUCKDB_MEMORY: text }), /FLOW_DUCKDB_MEMORY must be a size such as 512MB/);
  }
});
