import { defined } from "../words/defined.ts";
import type { JsonObject } from "../words/json.ts";
import type { ResultRef } from "../words/result.ts";

/** What a store says of a payload that it keeps. */
export interface StoredFacts {
  /** Of the payload as given, in hex. */
  sha256: string;
  bytes: number;
  store: string;
  /** RFC 3339. */
  expiresAt?: string | undefined;
  /** `gzip` where the payload was squeezed. */
  compression?: string | undefined;
  /** The location in the store. */
  meta?: JsonObject | undefined;
}

/** A reference as it stands before its payload is stored: what {@link storedRef} adds is only known then. */
export type UnstoredRef = Pick<ResultRef, "ref" | "scope" | "extracted" | "preview"> & {
  meta: { content_type: string; fields?: string[] };
};

/** The reference of a payload that is stored. */
export function storedRef({ ref, scope, meta, extracted, preview }: UnstoredRef, facts: StoredFacts): ResultRef {
  const { content_type, fields } = meta;
  const { sha256, bytes, store, expiresAt, compression, meta: place } = facts;
  return {
    ...{ kind: "result_ref", ref, store, scope },
    ...defined({ expires_at: expiresAt }),
    meta: { content_type, bytes, sha256, ...defined({ compression }), ...place, ...defined({ fields }) },
    ...{ extracted, preview },
  };
}
