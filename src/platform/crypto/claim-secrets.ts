import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from "node:crypto";
import type { KeyRing } from "./key-ring.ts";

/** A claim: which command, and which of its claims. */
export interface ClaimNumber {
  commandId: string;
  attempt: number;
}

/**
 * The secrets that a worker is given: one with each claim, one with its registration. They are derived from the server's keys, so
 * that nothing is stored and every server can check them; whether the claim or the registration is the present one, its row says.
 */
export interface ClaimSecrets {
  /** The secret of a claim: `<command>.<attempt>.<key id>.<mac>`. */
  ofClaim(claim: ClaimNumber): string;
  /** The claim whose secret a text is; undefined for any other text, also where its key is no longer in the ring. */
  claimOf(secret: string): ClaimNumber | undefined;
  /** The secret of a worker's process, which it registered under a name. */
  ofWorker(name: string, instance: string): string;
  /** The process whose secret a text is, among those that registered under the name; undefined for any other text. */
  instanceOf(secret: string, name: string): string | undefined;
}

const CLAIM = /^([1-9]\d{0,15})\.([1-9]\d{0,9})\.([\w-]{1,64})\.([\w-]{43})$/;
const WORKER = /^([\w-]{0,1400})\.([\w-]{1,64})\.([\w-]{43})$/;

/** The secrets that a ring's first key makes; those of its other keys are taken too. */
export function createClaimSecrets(ring: KeyRing): ClaimSecrets {
  const keys = new Map(
    ring.ids.map((id) => [
      id,
      {
        claim: createSecretKey(ring.derive(id, "flow claim secret")),
        worker: createSecretKey(ring.derive(id, "flow worker secret")),
      },
    ]),
  );
  const keysOf = (id: string) => keys.get(id);
  const present = keysOf(ring.current);
  if (present === undefined) throw new Error("A key ring has its current key");
  return {
    ofClaim: ({ commandId, attempt }) =>
      `${commandId}.${attempt}.${ring.current}.${mac(present.claim, `${commandId}.${attempt}`)}`,
    claimOf(secret) {
      const [, commandId = "", attempt = "", keyId = "", given = ""] = CLAIM.exec(secret) ?? [];
      const key = keysOf(keyId)?.claim;
      if (key === undefined || !isSame(given, mac(key, `${commandId}.${attempt}`))) return undefined;
      return { commandId, attempt: Number(attempt) };
    },
    ofWorker(name, instance) {
      const place = Buffer.from(instance).toString("base64url");
      return `${place}.${ring.current}.${mac(present.worker, workerText(name, place))}`;
    },
    instanceOf(secret, name) {
      const [, place, keyId = "", given = ""] = WORKER.exec(secret) ?? [];
      const key = keysOf(keyId)?.worker;
      if (place === undefined || key === undefined || !isSame(given, mac(key, workerText(name, place)))) {
        return undefined;
      }
      return Buffer.from(place, "base64url").toString();
    },
  };
}

/** The place has no dot, and so says where the name begins. */
function workerText(name: string, place: string): string {
  return `${place}.${name}`;
}

function mac(key: KeyObject, text: string): string {
  return createHmac("sha256", key).update(text).digest("base64url");
}

function isSame(given: string, wanted: string): boolean {
  return given.length === wanted.length && timingSafeEqual(Buffer.from(given), Buffer.from(wanted));
}
