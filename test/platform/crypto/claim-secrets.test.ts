import assert from "node:assert/strict";
import { test } from "node:test";
import { createClaimSecrets } from "../../../src/platform/crypto/claim-secrets.ts";
import { keyRing } from "../../support/engine/key-ring.ts";

const CLAIM = { commandId: "4713", attempt: 2 };

test("a secret is of one claim, and the same at every server with the key", () => {
  const secret = createClaimSecrets(keyRing("k1")).ofClaim(CLAIM);
  assert.equal(createClaimSecrets(keyRing("k1")).ofClaim(CLAIM), secret);
  assert.deepEqual(createClaimSecrets(keyRing("k1")).claimOf(secret), CLAIM);
  assert.equal(createClaimSecrets(keyRing("k1")).claimOf(secret.replace("4713.2", "4713.1")), undefined);
});

test("while keys are changed, secrets of the old key are taken; without it they are not", () => {
  const old = createClaimSecrets(keyRing("k1"));
  const both = createClaimSecrets(keyRing("k2", "k1"));
  const worker = old.ofWorker("w.1", "a.b/ü");
  assert.deepEqual(both.claimOf(old.ofClaim(CLAIM)), CLAIM);
  assert.equal(both.instanceOf(worker, "w.1"), "a.b/ü");
  assert.match(both.ofClaim(CLAIM), /^4713\.2\.k2\./);
  const fresh = createClaimSecrets(keyRing("k2"));
  assert.equal(fresh.claimOf(old.ofClaim(CLAIM)), undefined);
  assert.equal(fresh.instanceOf(worker, "w.1"), undefined);
});

test("a worker's secret is of one name, and no claim's", () => {
  const secrets = createClaimSecrets(keyRing());
  const worker = secrets.ofWorker("w", "i");
  assert.equal(secrets.instanceOf(worker, "v"), undefined);
  assert.equal(secrets.instanceOf(secrets.ofClaim(CLAIM), "w"), undefined);
  assert.equal(secrets.claimOf(worker), undefined);
  for (const text of ["", ".", "..", "...", "4713.2.k1.", `${"9".repeat(17)}.1.k1.${"A".repeat(43)}`]) {
    assert.equal(secrets.claimOf(text), undefined, text);
    assert.equal(secrets.instanceOf(text, "w"), undefined, text);
  }
});
