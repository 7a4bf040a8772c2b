import { createHmac, createSecretKey, timingSafeEqual } from "node:crypto";
import type { KeyRing } from "./key-ring.ts";

/** The link of a message about an approval. */
export interface ApprovalLink {
  approvalId: string;
  /** Of the message, from 1. */
  number: number;
}

/** The tokens of links: derived from the server's keys, so that nothing is stored and every server can check them. */
export interface ApprovalLinks {
  /** `<approval>.<number>.<key id>.<mac>` */
  tokenOf(link: ApprovalLink): string;
  /** The link whose token a text is; undefined for any other text, also where its key is no longer in the ring. */
  linkOf(token: string): ApprovalLink | undefined;
}

const TOKEN = /^([1-9]\d{0,15})\.([1-9]\d{0,8})\.([\w-]{1,64})\.([\w-]{43})$/;

/** The tokens that a ring's first key makes; those of its other keys are taken too. */
export function createApprovalLinks(ring: KeyRing): ApprovalLinks {
  const keys = new Map(ring.ids.map((id) => [id, createSecretKey(ring.derive(id, "flow approval link"))]));
  const macOf = (keyId: string, text: string) => {
    const key = keys.get(keyId);
    return key === undefined ? undefined : createHmac("sha256", key).update(text).digest();
  };
  return {
    tokenOf({ approvalId, number }) {
      const text = `${approvalId}.${number}`;
      const mac = macOf(ring.current, text);
      if (mac === undefined) throw new Error("A key ring has its current key");
      return `${text}.${ring.current}.${mac.toString("base64url")}`;
    },
    linkOf(token) {
      const [, approvalId = "", number = "", keyId = "", given = ""] = TOKEN.exec(token) ?? [];
      const mac = macOf(keyId, `${approvalId}.${number}`);
      const bytes = Buffer.from(given, "base64url");
      if (mac === undefined || bytes.length !== mac.length || !timingSafeEqual(bytes, mac)) return undefined;
      // Bits that no byte has: two texts would be one token.
      return bytes.toString("base64url") === given ? { approvalId, number: Number(number) } : undefined;
    },
  };
}
