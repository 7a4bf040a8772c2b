import assert from "node:assert/strict";
import { test } from "node:test";
import { scriptAuth } from "../../../src/worker/secrets/credentials.ts";

const token = { name: "scripts", type: "bearer", data: { token: "t" } };
const source = { find: (name: string) => Promise.resolve(name === "scripts" ? token : undefined) };

for (const auth of ["scripts", { credential: "scripts" }, { credential: "scripts", type: "bearer" }]) {
  test(`the credential that a script's auth ${JSON.stringify(auth)} names is found`, async () => {
    assert.deepEqual(await scriptAuth(source, "python", { script: { source: { auth } } }), {
      script: { ...token, isStored: true },
    });
  });
}

test("SQL may be fetched with a credential too", async () => {
  const config = { script: { source: { auth: "scripts" } } };
  for (const kind of ["sqldb", "duckdb", "warehouse"]) {
    assert.deepEqual(await scriptAuth(source, kind, config), { script: { ...token, isStored: true } }, kind);
  }
});

test("an inline auth, none at all, and that of another kind are left alone", async () => {
  const inline = { script: { source: { auth: { type: "bearer", token: "x" } } } };
  assert.deepEqual(await scriptAuth(source, "python", inline), {});
  assert.deepEqual(await scriptAuth(source, "python", { script: "a.py" }), {});
  assert.deepEqual(await scriptAuth(source, "python", { script: { source: { type: "file" } } }), {});
  assert.deepEqual(await scriptAuth(source, "shell", { script: { source: { auth: "scripts" } } }), {});
});

test("a credential that does not exist is an error that names it", async () => {
  const config = { script: { source: { auth: "nope" } } };
  await assert.rejects(scriptAuth(source, "python", config), { code: "NOT_FOUND", message: /'nope'/ });
});
