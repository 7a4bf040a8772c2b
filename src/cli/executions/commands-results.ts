import type { CliArgument, CliCommandSet, CliEntry } from "../command-line/command.ts";
import { SERVER_OPTIONS } from "../command-line/common-options.ts";

/** The execution that a command is about. */
export const EXECUTION: CliArgument = {
  name: "execution",
  summary: "Id of the execution, or an unambiguous prefix of it",
  optional: true,
};

const STORER: CliArgument = { name: EXECUTION.name, summary: EXECUTION.summary };

const OUTPUT = {
  ...{ name: "output", short: "o", value: "FILE" },
  summary: "Write it to this file; - writes to standard output",
};

const RESULT: CliCommandSet = {
  name: "result",
  summary: "Fetch a stored result by its reference",
  commands: [
    {
      ...{ name: "get", summary: "Fetch the payload" },
      arguments: [{ name: "ref", summary: "Its reference, noetl://execution/…, as events and results show it" }],
      options: [OUTPUT, ...SERVER_OPTIONS],
      load: async () => (await import("./result.ts")).getResult,
    },
  ],
  details: `The payload is written as it was stored, and its checksum is compared at the end. A payload that is long (over 1 MiB) or
not text is not written to a terminal, unless '-o -' requests it. A file gets its name only when it is complete.
With --json standard output holds one object: ref, content_type, bytes, sha256, and payload, or with -o the file.

Exit codes
  0 fetched   1 the server cannot be reached, or the payload is damaged
  2 no such result, or it cannot be shown on a terminal

Examples
  flow result get noetl://execution/7211/step/load/task/load/run/9 | jq '.rows | length'
  flow result get noetl://execution/7211/step/load/task/load/run/9 -o rows.json`,
};

const ARTIFACTS: CliCommandSet = {
  name: "artifacts",
  summary: "List and fetch the files that tasks of an execution have stored",
  commands: [
    {
      ...{ name: "list", summary: "List them: name, step, type, size, sha256" },
      arguments: [STORER],
      options: SERVER_OPTIONS,
      load: async () => (await import("./artifacts.ts")).listArtifacts,
    },
    {
      ...{ name: "get", summary: "Fetch one" },
      arguments: [STORER, { name: "name", summary: "Its name, as the list shows it" }],
      options: [
        { name: "step", value: "STEP", summary: "The step that stored it, where several stored one of this name" },
        OUTPUT,
        ...SERVER_OPTIONS,
      ],
      load: async () => (await import("./artifacts.ts")).getArtifact,
    },
  ],
  details: `Tasks store files by 'kind: artifact' with 'action: put'. A file is written as it was stored, and its checksum is compared at the
end; on a terminal only text is shown. Of several with one name and step the last is fetched.

Exit codes
  0 fetched   1 the server cannot be reached, or the file is damaged
  2 no such execution or file, several of this name, or it cannot be shown on a terminal

Examples
  flow artifacts list 7211
  flow artifacts get 7211 report.csv -o report.csv
  flow artifacts get 7211 chart.png --step draw > chart.png`,
};

/** The commands that fetch what executions have stored. */
export const RESULT_COMMANDS: readonly CliEntry[] = [RESULT, ARTIFACTS];
