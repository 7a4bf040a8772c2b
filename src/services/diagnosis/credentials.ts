import { listUnboundUsers } from "../../repositories/access/users.ts";
import { listOpenCredentials, readCredentialDefault } from "../../repositories/credentials/credential-policy.ts";
import { countUnknownKeys } from "../../repositories/credentials/rotation.ts";
import type { Database } from "../../repositories/database/database.ts";
import type { Reading } from "../../repositories/doctor/read-snapshot.ts";
import type { CredentialDefault } from "../../schema/rules/credential-playbooks.ts";
import { type CheckResult, counted, finding, shellWord } from "./finding.ts";

/** Most names in a finding. */
const NAMED_MAX = 10;
/** Most credentials that are counted. */
const ROWS_MAX = 1_000;

/** Credentials that every playbook may use: each author of a playbook gets what they open. */
export async function checkOpenCredentials(
  { sql }: Reading,
  byDefault: CredentialDefault | undefined,
): Promise<CheckResult> {
  const isOpen = (byDefault ?? (await readCredentialDefault(sql))) === "open";
  const names = await listOpenCredentials(sql, isOpen, ROWS_MAX);
  const [first] = names;
  if (first === undefined) return { findings: [], counts: { open_credentials: 0 } };
  const more = names.length > NAMED_MAX ? ` and ${names.length - NAMED_MAX} more` : "";
  const open = finding({
    check: "open_credentials",
    level: "notice",
    what: `Every playbook may use ${counted(names.length, "credential")}: ${names.slice(0, NAMED_MAX).join(", ")}${more}`,
    since: null,
    why: "Whoever may register and start a playbook, however small, can use what these credentials open, and send them elsewhere.",
    todo: "Say for each which playbooks may use it. FLOW_CREDENTIALS_DEFAULT=restricted then keeps new ones from being open.",
    command: `flow credentials paths ${shellWord(first)} 'PATH/**'`,
    count: names.length,
  });
  return { findings: [open], counts: { open_credentials: names.length } };
}

/** Secrets whose key is not among these; undefined where the keys are unknown. */
export async function checkKeys(
  database: Database,
  keyIds: readonly string[] | undefined,
): Promise<CheckResult | undefined> {
  if (keyIds === undefined) return undefined;
  const unknown = await countUnknownKeys(database, keyIds);
  return {
    findings: unknown.map(({ keyId, count }) =>
      finding({
        check: "encryption_keys",
        what: `${counted(count, "secret")} ${count === 1 ? "is" : "are"} encrypted with the key '${keyId}', which is not among those in use`,
        since: null,
        why: "Whatever needs these credentials and tokens fails.",
        todo: "Add the key to FLOW_ENCRYPTION_KEYS behind the current one, or store the credentials again.",
        command: "flow credentials list",
        count,
      }),
    ),
  };
}

/** Users who were entered with roles, have not logged in, and are bound to no identity provider: the first that vouches gets them. */
export async function checkUnboundUsers({ sql }: Reading): Promise<CheckResult> {
  const emails = await listUnboundUsers(sql, ROWS_MAX);
  const [first] = emails;
  if (first === undefined) return { findings: [], counts: { unbound_users: 0 } };
  const more = emails.length > NAMED_MAX ? ` and ${emails.length - NAMED_MAX} more` : "";
  const unbound = finding({
    check: "unbound_users",
    level: "notice",
    what: `${counted(emails.length, "user")} with roles who never logged in ${emails.length === 1 ? "is" : "are"} bound to no identity provider: ${emails.slice(0, NAMED_MAX).join(", ")}${more}`,
    since: null,
    why: "The first identity provider that vouches for such an address gets the user's roles.",
    todo: "Delete them, and add them again with their provider.",
    command: `flow users delete ${shellWord(first)} && flow users add ${shellWord(first)} ROLE --issuer URL`,
    count: emails.length,
  });
  return { findings: [unbound], counts: { unbound_users: emails.length } };
}
