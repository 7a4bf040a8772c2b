import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Database } from "../../../src/repositories/database/database.ts";
import { createCatalog } from "../../../src/services/catalog/catalog.ts";
import { registerSystemPlaybooks, suppliedDocument } from "../../../src/services/catalog/system-playbooks.ts";
import { openServiceDatabase } from "../../repositories/service-database.ts";
import { documents } from "../../support/engine/documents.ts";

let database: Database;
before(async () => {
  database = await openServiceDatabase();
});

const text = (path: string, what: string) =>
  `apiVersion: flow/v2\nkind: Playbook\nmetadata: {name: x, path: ${path}}\nworkflow:\n- {step: ${what}, tool: {kind: noop}}\n`;

/** The catalog, and a start of a program of some version that brings the playbook of a path. */
function setup(path: string) {
  const catalog = createCatalog({ database, documents, onRegistered: () => undefined });
  const start = async (version: string, what: string) => {
    const [outcome] = await registerSystemPlaybooks({ database, catalog, version }, [
      { path, content: text(path, what) },
    ]);
    return outcome?.outcome;
  };
  return { catalog, start };
}

test("a playbook is registered once, however often a program of its version starts", async () => {
  const { catalog, start } = setup("system/once");
  assert.equal(await start("1.2.0", "first"), "registered");
  assert.equal(await start("1.2.0", "first"), "unchanged");
  const entry = await catalog.find("system/once");
  assert.equal(entry.version, 1);
  assert.match(entry.content, /^# Supplied with flow 1\.2\.0, sha256 [0-9a-f]{64}: replaced by that of a newer flow/);
});

test("servers that start at once make one version", async () => {
  const { catalog, start } = setup("system/many");
  await Promise.all([start("1.2.0", "first"), start("1.2.0", "first"), start("1.2.0", "first")]);
  assert.equal((await catalog.find("system/many")).version, 1);
});

test("a newer program replaces what an older one supplied, and an older one leaves what a newer one did", async () => {
  const { catalog, start } = setup("system/renewed");
  await start("1.9.0", "first");
  assert.equal(await start("1.10.0", "second"), "registered");
  assert.equal(await start("1.9.0", "first"), "newer");
  assert.equal(
    (await catalog.find("system/renewed")).content,
    suppliedDocument(text("system/renewed", "second"), "1.10.0"),
  );
  // The same version with other settings.
  assert.equal(await start("1.10.0", "third"), "registered");
});

test("what an administrator has edited stays, with or without the first line, until they put the supplied one back", async () => {
  const { catalog, start } = setup("system/edited");
  await start("1.0.0", "first");
  const { content } = await catalog.find("system/edited");
  for (const edited of [content.replace("step: first", "step: mine"), text("system/edited", "mine")]) {
    await catalog.register({ content: edited });
    assert.equal(await start("1.0.0", "first"), "edited");
    assert.equal(await start("2.0.0", "second"), "edited");
    assert.equal((await catalog.find("system/edited")).content, edited);
  }
  await catalog.register({ content });
  assert.equal(await start("1.0.0", "first"), "unchanged");
  assert.equal(await start("2.0.0", "second"), "registered");
});

test("a first line of another text does not make an edit the program's own", async () => {
  const { catalog, start } = setup("system/forged");
  const [line = ""] = suppliedDocument(text("system/forged", "other"), "1.0.0").split("\n");
  await catalog.register({ content: `${line}\n${text("system/forged", "mine")}` });
  assert.equal(await start("1.0.0", "first"), "edited");
});
