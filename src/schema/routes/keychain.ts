import {
  KeychainDeleteAnswer,
  KeychainGetAnswer,
  KeychainLeaseAnswer,
  KeychainLeaseBody,
  KeychainListAnswer,
  KeychainListQuery,
  KeychainQuery,
  KeychainSetAnswer,
  KeychainSetBody,
} from "../api/keychain.ts";
import { contract } from "./contract.ts";

/** In the audit log. */
const ENTRY = "keychain/:catalog_id/:keychain_name";

/** The keychain (interface specification, Keychain). The list comes first: its address could be read as that of an entry. */
export const KEYCHAIN_ROUTES = {
  list: contract({
    method: "get",
    path: "/api/keychain/catalog/:catalog_id",
    summary: "The keychain entries of a catalog entry, without their data",
    access: "worker",
    claim: "asked",
    query: KeychainListQuery,
    answer: KeychainListAnswer,
    refusals: [404, 422],
  }),
  get: contract({
    method: "get",
    path: "/api/keychain/:catalog_id/:keychain_name",
    summary: "A keychain entry, decrypted; one that has expired or is not there is 200 too, with that status",
    access: "worker",
    claim: "asked",
    audit: { action: "keychain.read", resource: ENTRY },
    query: KeychainQuery,
    answer: KeychainGetAnswer,
    refusals: [404, 422],
  }),
  set: contract({
    method: "post",
    path: "/api/keychain/:catalog_id/:keychain_name",
    summary: "Keeps a keychain entry, encrypted, or replaces it; ends the lease of its resolver",
    access: "worker",
    claim: "asked",
    audit: { action: "keychain.write", resource: ENTRY },
    body: KeychainSetBody,
    answer: KeychainSetAnswer,
    refusals: [400, 404, 409, 413, 422],
  }),
  delete: contract({
    method: "delete",
    path: "/api/keychain/:catalog_id/:keychain_name",
    summary: "Deletes a keychain entry; a missing one is no error",
    access: "worker",
    claim: "asked",
    audit: { action: "keychain.delete", resource: ENTRY },
    query: KeychainQuery,
    answer: KeychainDeleteAnswer,
    refusals: [404, 422],
  }),
  lease: contract({
    method: "post",
    path: "/api/keychain/:catalog_id/:keychain_name/lease",
    summary:
      "Asks for the right to resolve or renew an entry, which one has at a time, or tells that it could not be done",
    access: "worker",
    claim: "asked",
    body: KeychainLeaseBody,
    answer: KeychainLeaseAnswer,
    refusals: [404, 409, 413, 422],
  }),
} as const;
