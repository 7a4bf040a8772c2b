import assert from "node:assert/strict";
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { KEY_FILE, type KeyRingSource, openKeyRing } from "../../../src/platform/crypto/key-ring-source.ts";
import { createSecret } from "../../../src/platform/crypto/secret.ts";
import { encryptionKeys } from "../../support/engine/key-ring.ts";

async function setup(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), "flow-keys-"));
  t.after(() => rm(folder, { recursive: true }));
  const said: string[] = [];
  const open = (source: Partial<KeyRingSource>) =>
    openKeyRing({
      encryptionKeys: undefined,
      encryptionKeysFile: undefined,
      keyFolder: undefined,
      log: (line) => said.push(line),
      ...source,
    });
  return { folder, said, open };
}

test("the embedded default makes a key of its own, readable by its owner alone, and keeps it", async (t) => {
  const { folder, said, open } = await setup(t);
  const home = join(folder, "home");
  const envelope = (await open({ keyFolder: home })).encrypt("secret", "row");
  assert.equal((await stat(join(home, KEY_FILE))).mode & 0o777, 0o600);
  assert.deepEqual(await readdir(home), [KEY_FILE]);
  assert.match(said.join(), /a key .* was made: .*keep a copy/);
  assert.equal((await open({ keyFolder: home })).decrypt(envelope, "row").toString(), "secret");
  assert.equal(said.length, 1);
});

test("servers that start at the same time take the same key", async (t) => {
  const { folder, open } = await setup(t);
  const rings = await Promise.all(Array.from({ length: 8 }, () => open({ keyFolder: folder })));
  const [first] = rings;
  for (const ring of rings) assert.deepEqual(ring.derive("k1", "same"), first?.derive("k1", "same"));
  assert.deepEqual(await readdir(folder), [KEY_FILE]);
});

test("a key file that others can read is closed, and that is said", async (t) => {
  const { folder, said, open } = await setup(t);
  await open({ keyFolder: folder });
  await chmod(join(folder, KEY_FILE), 0o644);
  await open({ keyFolder: folder });
  assert.equal((await stat(join(folder, KEY_FILE))).mode & 0o777, 0o600);
  assert.match(said.at(-1) ?? "", /could be read by others/);
});

test("keys that are set are used instead, and no file is made", async (t) => {
  const { folder, open } = await setup(t);
  const ring = await open({ encryptionKeys: createSecret(encryptionKeys("k2", "k1")), keyFolder: folder });
  assert.deepEqual(ring.ids, ["k2", "k1"]);
  const file = join(folder, "keys");
  await writeFile(file, encryptionKeys("k3", "k2").replace(",", "\n"));
  assert.deepEqual((await open({ encryptionKeysFile: file, keyFolder: folder })).ids, ["k3", "k2"]);
  assert.deepEqual(await readdir(folder), ["keys"]);
});

test("a server with a database of its own does not begin without a key", async (t) => {
  const { open } = await setup(t);
  await assert.rejects(open({}), { code: "INVALID_SETTING", message: /FLOW_ENCRYPTION_KEYS=k1:\$\(openssl rand/ });
});

test("both settings at once are refused, as is a file that is not there, is empty or holds a default", async (t) => {
  const { folder, open } = await setup(t);
  const file = join(folder, "keys");
  await assert.rejects(open({ encryptionKeys: createSecret(encryptionKeys("k1")), encryptionKeysFile: file }), {
    message: /both set/,
  });
  await assert.rejects(open({ encryptionKeysFile: file }), { code: "FILE_UNREADABLE", message: /ENOENT/ });
  await writeFile(file, "\n");
  await assert.rejects(open({ encryptionKeysFile: file }), { message: /\(.*keys\) holds no key/ });
  await writeFile(file, `k1:${Buffer.alloc(32).toString("base64")}`);
  await assert.rejects(open({ encryptionKeysFile: file }), { message: /default/ });
});

test("a key file of the embedded default that was damaged is refused, not replaced", async (t) => {
  const { folder, open } = await setup(t);
  const file = join(folder, KEY_FILE);
  await writeFile(file, "k1:short", { mode: 0o600 });
  await assert.rejects(open({ keyFolder: folder }), { message: /has \d bytes, not 32/ });
  assert.equal(await readFile(file, "utf8"), "k1:short");
});
