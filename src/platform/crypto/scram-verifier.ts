import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";

/** As PostgreSQL does by default. */
const ITERATIONS = 4_096;
const SALT_BYTES = 16;

/**
 * What PostgreSQL keeps of a password (SCRAM-SHA-256, RFC 5802 and 7677): it can be given instead of the password, which then
 * appears in no statement, log or view of the server. The password is plain ASCII; others would have to be normalised.
 */
export function scramVerifier(password: string, salt: Buffer = randomBytes(SALT_BYTES)): string {
  const salted = pbkdf2Sync(password, salt, ITERATIONS, 32, "sha256");
  const keyOf = (label: string) => createHmac("sha256", salted).update(label).digest();
  const stored = createHash("sha256").update(keyOf("Client Key")).digest("base64");
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString("base64")}$${stored}:${keyOf("Server Key").toString("base64")}`;
}
