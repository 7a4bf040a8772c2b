import assert from "node:assert/strict";
import { test } from "node:test";
import { scramVerifier } from "../../../src/platform/crypto/scram-verifier.ts";

test("the verifier of a password and a salt is what PostgreSQL makes of them", () => {
  // RFC 7677, section 3: its example's password and salt, whose keys PostgreSQL computes as here.
  const salt = Buffer.from("W22ZaJ0SNY7soEsUEjb6gQ==", "base64");
  assert.equal(
    scramVerifier("pencil", salt),
    "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=",
  );
});

test("two verifiers of one password differ, and neither contains the password", () => {
  const [one, other] = [scramVerifier("pencil"), scramVerifier("pencil")];
  assert.notEqual(one, other);
  assert.ok(!one.includes("pencil"));
  assert.match(one, /^SCRAM-SHA-256\$4096:[\w+/]+=*\$[\w+/]+=*:[\w+/]+=*$/);
});
