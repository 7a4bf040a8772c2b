import {
  CredentialAnswer,
  CredentialBody,
  CredentialPlaybooksBody,
  CredentialQuery,
  CredentialRecord,
  CredentialsAnswer,
  CredentialsQuery,
  CredentialUsesAnswer,
  CredentialUsesQuery,
  DeletedCredential,
  ReplaceCredentialBody,
  SqlExecuteAnswer,
  SqlExecuteBody,
} from "../api/credentials.ts";
import { SealingKeyAnswer } from "../api/executions.ts";
import { RotateAnswer, RotateBody } from "../api/secrets.ts";
import {
  TransientBody,
  TransientDeleteAnswer,
  TransientGetAnswer,
  TransientListAnswer,
  TransientListQuery,
  TransientPutAnswer,
} from "../api/transient.ts";
import { contract } from "./contract.ts";

/** Transient values of executions. */
export const TRANSIENT_ROUTES = {
  list: contract({
    method: "get",
    path: "/api/executions/:execution_id/transient",
    summary: "The transient values of an execution, by key, without what they hold",
    access: "worker",
    claim: "tree",
    query: TransientListQuery,
    answer: TransientListAnswer,
    refusals: [404, 422],
  }),
  get: contract({
    method: "get",
    path: "/api/executions/:execution_id/transient/:key",
    summary: "A transient value of an execution",
    access: "worker",
    claim: "tree",
    answer: TransientGetAnswer,
    refusals: [404, 422],
  }),
  put: contract({
    method: "put",
    path: "/api/executions/:execution_id/transient/:key",
    summary: "Keeps a transient value of an execution that is open, or replaces it",
    access: "worker",
    claim: "tree",
    body: TransientBody,
    answer: TransientPutAnswer,
    refusals: [404, 409, 413, 422],
  }),
  delete: contract({
    method: "delete",
    path: "/api/executions/:execution_id/transient/:key",
    summary: "Deletes a transient value; a missing one is no error",
    access: "worker",
    claim: "tree",
    answer: TransientDeleteAnswer,
    refusals: [404, 422],
  }),
} as const;

/** Credentials (interface specification, Credentials). */
export const CREDENTIAL_ROUTES = {
  list: contract({
    method: "get",
    path: "/api/credentials",
    summary: "Credentials in the order of their names, never their data",
    access: "operator",
    user: { permission: "manage_credentials" },
    query: CredentialsQuery,
    answer: CredentialsAnswer,
    refusals: [422],
  }),
  read: contract({
    method: "get",
    path: "/api/credentials/:identifier",
    summary: "One credential by its id or name; with `include_data=true` decrypted, which is audited",
    access: "worker",
    claim: "asked",
    user: { permission: "manage_credentials" },
    query: CredentialQuery,
    answer: CredentialAnswer,
    audit: { action: "credential.read", resource: "credential/:identifier" },
    refusals: [404, 422],
  }),
  uses: contract({
    method: "get",
    path: "/api/credentials/:identifier/uses",
    summary: "What names a credential: newest versions in the catalog, with the places in their documents",
    access: "operator",
    user: { permission: "manage_credentials" },
    query: CredentialUsesQuery,
    answer: CredentialUsesAnswer,
    refusals: [422],
  }),
  save: contract({
    method: "post",
    path: "/api/credentials",
    summary:
      "Creates a credential, or replaces the one of that name; 400 with every message when its data violate a schema",
    access: "operator",
    user: { permission: "manage_credentials" },
    body: CredentialBody,
    answer: CredentialRecord,
    creates: true,
    audit: { action: "credential.write", resource: "credential" },
    refusals: [400, 413, 422],
  }),
  replace: contract({
    method: "put",
    path: "/api/credentials/:identifier",
    summary: "The same, by the name in the address",
    access: "operator",
    user: { permission: "manage_credentials" },
    body: ReplaceCredentialBody,
    answer: CredentialRecord,
    creates: true,
    audit: { action: "credential.write", resource: "credential/:identifier" },
    refusals: [400, 413, 422],
  }),
  playbooks: contract({
    method: "put",
    path: "/api/credentials/:identifier/playbooks",
    summary: "Sets which playbooks may use a credential, by its name; its data stays as it is",
    access: "operator",
    body: CredentialPlaybooksBody,
    answer: CredentialRecord,
    audit: { action: "credential.paths", resource: "credential/:identifier" },
    refusals: [404, 413, 422],
  }),
  remove: contract({
    method: "delete",
    path: "/api/credentials/:identifier",
    summary: "Deletes the credential of a name; what runs with it keeps it to the end of its task",
    access: "operator",
    user: { permission: "manage_credentials" },
    answer: DeletedCredential,
    audit: { action: "credential.delete", resource: "credential/:identifier" },
    refusals: [404],
  }),
} as const;

/** What operators do with all secrets at once. */
export const SECRET_ROUTES = {
  rotate: contract({
    method: "post",
    path: "/api/admin/secrets/rotate",
    summary: "Encrypts with the current key some of what another key has encrypted, while all of it is read",
    access: "operator",
    body: RotateBody,
    bodyOptional: true,
    answer: RotateAnswer,
    audit: { action: "secrets.rotate", resource: "key" },
    refusals: [413, 422],
  }),
} as const;

/** SQL for operators (interface specification, Credentials). */
export const SQLDB_ROUTES = {
  execute: contract({
    method: "post",
    path: "/api/sqldb/execute",
    summary: "Runs SQL with a stored credential; a database error is 400 with `detail.sqlstate`",
    access: "operator",
    body: SqlExecuteBody,
    answer: SqlExecuteAnswer,
    audit: { action: "sqldb.execute", resource: "credential" },
    refusals: [400, 404, 413, 422, 504],
  }),
} as const;

/** Keys of sealed values. */
export const SEALING_ROUTES = {
  key: contract({
    method: "get",
    path: "/api/executions/:execution_id/sealing-key",
    summary: "The keys with which workers seal secrets that pass between the steps of an execution's tree; audited",
    access: "worker",
    claim: "tree",
    answer: SealingKeyAnswer,
    audit: { action: "sealing.key", resource: "execution/:execution_id" },
    refusals: [404],
  }),
} as const;
