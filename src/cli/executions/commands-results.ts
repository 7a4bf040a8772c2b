import type { CliCommand } from "../command-line/command.ts";
import { JSON_SWITCH, WHICH_SERVER } from "../command-line/common-options.ts";

const RESULT: CliCommand = {
  name: "result",
  summary: "Fetch a stored result by its reference",
  arguments: [
    { name: "action", summary: "What to do", choices: ["get"] },
    { name: "ref", summary: "Its reference, noetl://execution/…, as events and results show it" },
  ],
  options: [
    {
      name: "output",
      short: "o",
      value: "FILE",
      summary: "Write it to this file; - is standard output, whatever it is",
    },
    JSON_SWITCH,
    ...WHICH_SERVER,
  ],
  details: `The payload goes to standard output as it was stored, part by part, and its checksum is compared at its end. What is long
(over 1 MiB) or no text is not written to a terminal, unless '-o -' asks for that. A file has its name only once it is whole.
With --json standard output holds one object: ref, content_type, bytes, sha256, and payload, or with -o the file.

Exit codes
  0 fetched   1 the server cannot be reached, or the payload is damaged   2 no such result, or it has no place in a terminal

Examples
  flow result get noetl://execution/7211/step/load/task/load/run/9 | jq '.rows | length'
  flow result get noetl://execution/7211/step/load/task/load/run/9 -o rows.json`,
  load: async () => (await import("./result.ts")).manageResults,
};

/** The commands of stored results. */
export const RESULT_COMMANDS: readonly CliCommand[] = [RESULT];
