import { CREDENTIAL_TYPES } from "../../schema/rules/credential-types.ts";
import {
  type CliArgument,
  type CliCommandSet,
  type CliEntry,
  type CliOption,
  commandsOf,
} from "../command-line/command.ts";
import { SERVER_OPTIONS } from "../command-line/common-options.ts";

const TYPE: CliOption = {
  name: "type",
  value: "TYPE",
  choices: CREDENTIAL_TYPES,
  summary: "Type, for set; list only these",
};
const TAG: CliOption = {
  name: "tag",
  value: "TAG",
  many: true,
  summary: "Tag, for set, may be repeated; list only those with it",
};

const NAME: CliArgument = { name: "name", summary: "Name of the credential" };

const credentialCommand = commandsOf(async () => (await import("./credentials.ts")).CREDENTIAL_ACTIONS, SERVER_OPTIONS);

const CREDENTIALS: CliCommandSet = {
  name: "credentials",
  summary: "List, show, set or delete the credentials of a server, or say which playbooks may use them",
  default: "list",
  commands: [
    {
      ...credentialCommand(
        "list",
        "List credentials, without their data",
        [],
        [
          TYPE,
          TAG,
          { name: "search", value: "TEXT", summary: "List only those with this text in name, description or a tag" },
        ],
      ),
      surplusOption: "search",
    },
    credentialCommand(
      "get",
      "Show one credential",
      [{ name: "name", summary: "Name or id of the credential" }],
      [
        { name: "include-data", summary: "Show the decrypted data, for get; asks first, and is audited" },
        { name: "yes", summary: "Do not ask, for get" },
      ],
    ),
    credentialCommand(
      "set",
      "Create or replace one",
      [NAME, { name: "field", summary: "Data: KEY=VALUE, KEY=@FILE or KEY:=JSON", optional: true, many: true }],
      [
        TYPE,
        TAG,
        {
          name: "file",
          value: "FILE",
          summary: "JSON {type, data, schema?, description?, tags?, meta?} for set; - reads a pipe",
        },
        { name: "schema", value: "JSON|@FILE", summary: "Schema of the data, for set: {fields?, required?, types?}" },
        { name: "description", value: "TEXT", summary: "Description, for set" },
        {
          name: "paths",
          value: "PATTERN",
          many: true,
          summary: "Playbooks that may use it, as 'etl/**', for set; may be repeated",
        },
      ],
    ),
    credentialCommand(
      "paths",
      "Set which playbooks may use a credential; its data stays",
      [
        NAME,
        {
          name: "pattern",
          summary: "Paths or patterns, as 'etl/**', in place of those from before",
          optional: true,
          many: true,
        },
      ],
      [{ name: "none", summary: "No playbook may use it, for paths" }],
    ),
    credentialCommand("delete", "Delete one", [NAME]),
  ],
  details: `'set' replaces the whole credential. Data come from a file, a pipe, or field by field: KEY=VALUE is text, or what
the type expects (port=5432 is a number); KEY=@FILE is the text of a file (@-: a pipe); KEY:=JSON is any JSON. Other users of the
machine can see the command line, and the shell keeps it in its history: use a file or a pipe for secrets.

A credential is for the playbooks that --paths names ('**': all of them). Without it no playbook may use the credential, but on
a service whose FLOW_CREDENTIALS_DEFAULT is open.

Only 'get --include-data' ever shows data. Data that violate the schema of the type, or their own, are refused with all
problems at once.

Exit codes
  0 done   1 the server cannot be reached or failed   2 refused, unknown, or the command line was not understood

Examples
  flow credentials
  flow credentials set pg_demo --type sqldb --paths 'etl/**' host=db port=5432 user=demo password=@password.txt database=demo
  pass show pg_demo.json | flow credentials set pg_demo --file - --paths 'etl/**'
  flow credentials paths pg_demo 'etl/**' reports/daily
  flow credentials get pg_demo --include-data
  flow credentials delete pg_demo`,
};

const PLAYBOOK: CliArgument = { name: "playbook", summary: "Path of the playbook, or a catalog id" };
const VERSION: CliOption = {
  name: "version",
  value: "NUMBER",
  summary: "Version of the path; default the newest. Each version has its own keychain",
};

const keychainCommand = commandsOf(
  async () => (await import("./keychain.ts")).KEYCHAIN_ACTIONS,
  [VERSION, ...SERVER_OPTIONS],
);

const KEYCHAIN: CliCommandSet = {
  name: "keychain",
  summary: "Show what a server has cached in the keychain of a playbook, or delete an entry",
  commands: [
    keychainCommand("list", "List the entries, without their data", [PLAYBOOK]),
    keychainCommand(
      "delete",
      "Delete one entry",
      [PLAYBOOK, { name: "entry", summary: "Name of the entry" }],
      [
        {
          name: "scope",
          value: "SCOPE",
          choices: ["global", "local", "shared"],
          summary: "For delete; default global",
        },
        {
          name: "execution",
          value: "ID",
          summary: "For delete: the execution of a local entry, or any of a shared entry's tree",
        },
      ],
    ),
  ],
  details: `Each entry is listed with its scope, the execution that it belongs to, its type, when it expires, whether it is then
renewed, and how often it was read; its data are never shown. A deleted entry is resolved afresh when a playbook next
reads it. Deleting an entry that does not exist is no error.

Examples
  flow keychain list etl/load
  flow keychain list 7301 --json
  flow keychain delete etl/load api_token
  flow keychain delete etl/load api_token --scope shared --execution 7211`,
};

const SECRETS: CliCommandSet = {
  name: "secrets",
  summary: "Encrypt everything on a server with its current key",
  commands: [
    {
      ...{ name: "rotate", summary: "Re-encrypt everything with the current key" },
      ...{ arguments: [], options: SERVER_OPTIONS },
      load: async () => (await import("./secrets.ts")).rotateSecrets,
    },
  ],
  details: `Every encrypted value names its key. To change keys without downtime: append the new key to FLOW_ENCRYPTION_KEYS of
every server and restart them one by one; move it to the front and restart them again; then rotate. Rotation can be
interrupted and run again. Remove the old key when the executions that ran under it have ended.

With --json one object: {key_id, rotated, left, failed: [{resource, message}]}.

Exit codes
  0 everything has the current key   1 something does not; it is listed

Examples
  flow secrets rotate
  flow secrets rotate --json`,
};

/** The commands about what a server keeps encrypted. */
export const SECRET_COMMANDS: readonly CliEntry[] = [CREDENTIALS, SECRETS, KEYCHAIN];
