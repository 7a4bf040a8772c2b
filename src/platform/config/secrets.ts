import { CREDENTIAL_DEFAULTS } from "../../schema/rules/credential-playbooks.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { parseKeys } from "../crypto/parse-keys.ts";
import { createSecret } from "../crypto/secret.ts";
import { countSetting, oneOf, secondsSetting, setting } from "../setting.ts";

/** Settings of encryption at rest, the audit log, and operators' statements. Times are milliseconds in the program. */
export const SECRET_SETTINGS = {
  encryptionKeys: setting({
    name: "FLOW_ENCRYPTION_KEYS",
    meaning: "Keys of what is encrypted at rest, as id:base64 of 32 bytes, comma-separated; the first encrypts",
    default: "a key file in FLOW_HOME with the embedded PostgreSQL; needed with a database of your own",
    secret: true,
    parse: (text) => {
      if (text === undefined) return undefined;
      // Here for its refusals: a key in the settings could be printed, a secret cannot.
      parseKeys(text, "FLOW_ENCRYPTION_KEYS");
      return createSecret(text);
    },
  }),
  encryptionKeysFile: setting({
    name: "FLOW_ENCRYPTION_KEYS_FILE",
    meaning: "File with the same, one key per line, instead of FLOW_ENCRYPTION_KEYS",
    default: "none",
    parse: (text) => text,
  }),
  credentialsDefault: setting({
    name: "FLOW_CREDENTIALS_DEFAULT",
    meaning: "Credentials that do not say which playbooks may use them are for all (open) or for none (restricted)",
    default: "restricted; open in a database that had such credentials before this setting",
    parse: (text) => (text === undefined ? undefined : oneOf("FLOW_CREDENTIALS_DEFAULT", text, CREDENTIAL_DEFAULTS)),
  }),
  auditDays: countSetting("FLOW_AUDIT_DAYS", "Days that rows of the audit log are kept", 365, 36_500),
  sqlExecuteMs: secondsSetting(
    "FLOW_SQLDB_EXECUTE_TIMEOUT_SECONDS",
    "Longest time of a statement of POST /api/sqldb/execute",
    30,
  ),
  sqlExecuteRowsMax: countSetting(
    "FLOW_SQLDB_EXECUTE_ROWS_MAX",
    "Most rows that POST /api/sqldb/execute answers",
    1_000,
    100_000,
  ),
  sqlExecuteOwn: setting({
    name: "FLOW_SQLDB_EXECUTE_CATALOG",
    meaning: "true lets POST /api/sqldb/execute reach the service's own database",
    default: "false",
    parse: (text) => {
      const value = text?.toLowerCase() ?? "false";
      if (value === "true" || value === "false") return value === "true";
      throw new FlowError("INVALID_SETTING", `FLOW_SQLDB_EXECUTE_CATALOG must be true or false, got '${text}'`);
    },
  }),
} as const;
