import type { CliCommand } from "../command-line/command.ts";
import { JSON_SWITCH, WHICH_SERVER } from "../command-line/common-options.ts";

/** `flow keychain`. */
export const KEYCHAIN: CliCommand = {
  name: "keychain",
  summary: "Show what a server has cached in the keychain of a playbook, or delete an entry",
  arguments: [
    { name: "action", summary: "list, or delete: one entry", choices: ["list", "delete"] },
    { name: "playbook", summary: "Path of the playbook, or a catalog id" },
    { name: "entry", summary: "Name of the entry, for delete", optional: true },
  ],
  options: [
    {
      name: "version",
      value: "NUMBER",
      summary: "Version of the path; default the newest. Each has a keychain of its own",
    },
    { name: "scope", value: "SCOPE", choices: ["global", "local", "shared"], summary: "For delete; default global" },
    { name: "execution", value: "ID", summary: "For delete: whose local entry, or of whose tree the shared one" },
    JSON_SWITCH,
    ...WHICH_SERVER,
  ],
  details: `Each entry with its scope, the execution that it belongs to, its type, when it expires, whether it is renewed then, and how
often it was read. Never what is in it. A deleted entry is resolved afresh when a playbook next reads it; deleting one that is
not there is no error.

Examples
  flow keychain list etl/load
  flow keychain list 7301 --json
  flow keychain delete etl/load api_token
  flow keychain delete etl/load api_token --scope shared --execution 7211`,
  load: async () => (await import("./keychain.ts")).manageKeychain,
};
