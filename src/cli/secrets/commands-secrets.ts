import { CREDENTIAL_TYPES } from "../../schema/rules/credential-types.ts";
import type { CliCommand } from "../command-line/command.ts";
import { JSON_SWITCH, WHICH_SERVER } from "../command-line/common-options.ts";

const CREDENTIALS: CliCommand = {
  name: "credentials",
  summary: "List, show, set or delete the credentials of a server",
  arguments: [
    {
      name: "action",
      summary: "list (default), get, set: create or replace, delete",
      optional: true,
      choices: ["list", "get", "set", "delete"],
    },
    { name: "name", summary: "Name of the credential; get takes its id, too", optional: true },
    { name: "field", summary: "Data, for set: KEY=VALUE, KEY=@FILE or KEY:=JSON", optional: true, many: true },
  ],
  options: [
    { name: "type", value: "TYPE", choices: CREDENTIAL_TYPES, summary: "Type, for set; list only these" },
    { name: "tag", value: "TAG", many: true, summary: "Tag, for set, may be repeated; list only those with it" },
    { name: "search", value: "TEXT", summary: "List only those with this text in name, description or a tag" },
    {
      name: "file",
      value: "FILE",
      summary: "JSON {type, data, schema?, description?, tags?, meta?} for set; - reads a pipe",
    },
    { name: "schema", value: "JSON|@FILE", summary: "Schema of the data, for set: {fields?, required?, types?}" },
    { name: "description", value: "TEXT", summary: "Description, for set" },
    { name: "include-data", summary: "Show the decrypted data, for get; asks first, and is audited" },
    { name: "yes", summary: "Do not ask" },
    JSON_SWITCH,
    ...WHICH_SERVER,
  ],
  details: `Setting replaces the whole credential. Data come from a file, from a pipe, or field by field: KEY=VALUE is text, or what
the type wants (port=5432 is a number); KEY=@FILE is the text of a file; KEY:=JSON is any JSON. What stands on the command
line can be seen by other users of the machine, and stays in the shell's history: rather use a file or a pipe for secrets.

Nothing but 'get --include-data' ever shows data. Data that violate the type's or the given schema are refused with every
message at once.

Exit codes
  0 done   1 the server cannot be reached or failed   2 refused, unknown, or the command line was not understood

Examples
  flow credentials
  flow credentials set pg_demo --type sqldb host=db port=5432 user=demo password=@password.txt database=demo
  pass show pg_demo.json | flow credentials set pg_demo --file -
  flow credentials get pg_demo --include-data
  flow credentials delete pg_demo`,
  load: async () => (await import("./credentials.ts")).manageCredentials,
};

const SECRETS: CliCommand = {
  name: "secrets",
  summary: "Encrypt everything on a server with its current key",
  arguments: [{ name: "action", summary: "rotate", choices: ["rotate"] }],
  options: [JSON_SWITCH, ...WHICH_SERVER],
  details: `What is encrypted at rest names its key. To change keys without a stop: add the new one to FLOW_ENCRYPTION_KEYS of every
server behind the old one and restart them one after another; put it first and restart them again; rotate. It may be
interrupted and run again. Then the old key can go, once the executions that ran under it have ended.

With --json one object: {key_id, rotated, left, failed: [{resource, message}]}.

Exit codes
  0 everything has the current key   1 something has not: it is named

Examples
  flow secrets rotate
  flow secrets rotate --json`,
  load: async () => (await import("./secrets.ts")).manageSecrets,
};

/** The commands about what a server keeps encrypted. */
export const SECRET_COMMANDS: readonly CliCommand[] = [CREDENTIALS, SECRETS];
