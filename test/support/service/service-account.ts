import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { type JWTPayload, jwtVerify, type ProtectedHeaderParameters } from "jose";
import { JWT_BEARER } from "../../../src/platform/crypto/jwt-bearer.ts";
import type { StoredCredential } from "../../../src/ports/credentials.ts";
import type { RecordedRequest } from "../servers/http-server.ts";
import { formFields } from "./secret-source.ts";

/** A service account, and the public half of its key. */
export interface TestAccount {
  credential: StoredCredential;
  publicKey: KeyObject;
}

/** A service account whose tokens come from `tokenUri`. */
export function serviceAccount(tokenUri: string, more: Record<string, string> = {}): TestAccount {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const data = {
    client_email: "flow@project-1.iam.example.com",
    private_key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    private_key_id: "key-1",
    token_uri: tokenUri,
    project_id: "project-1",
    ...more,
  };
  return { credential: { name: "account", type: "service_account", data }, publicKey };
}

/** The claims of the assertion in a request, as a token endpoint checks them (RFC 7523, section 3): throws for a bad one. */
export async function checkedAssertion(
  request: RecordedRequest,
  publicKey: KeyObject,
  audience: string,
): Promise<{ payload: JWTPayload; header: ProtectedHeaderParameters }> {
  const { grant_type, assertion = "" } = formFields(request.body);
  if (grant_type !== JWT_BEARER) throw new Error(`The grant is ${grant_type}`);
  const { payload, protectedHeader } = await jwtVerify(assertion, publicKey, {
    algorithms: ["RS256", "ES256"],
    audience,
    issuer: "flow@project-1.iam.example.com",
    requiredClaims: ["iss", "aud", "iat", "exp"],
  });
  return { payload, header: protectedHeader };
}
