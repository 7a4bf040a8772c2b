import { type CliCommandSet, type CliEntry, type CliOption, commandsOf } from "../command-line/command.ts";

const SERVER_URL: CliOption = {
  name: "server-url",
  value: "URL",
  summary: "Server to examine; default FLOW_SERVER_URL, else the context in use",
};
const DB_DSN: CliOption = {
  name: "db-dsn",
  value: "DSN",
  summary: "Check this database without the server; default FLOW_DATABASE_URL, which stays out of process lists",
};
const doctorCommand = commandsOf(
  async () => (await import("./doctor.ts")).DOCTOR_ACTIONS,
  [{ name: "json", summary: "Print the object also on a terminal" }],
);

const DOCTOR: CliCommandSet = {
  name: "doctor",
  summary: "Find what is wrong with a service, and repair it; also as 'flow-doctor'",
  commands: [
    doctorCommand(
      "detect",
      "Find stuck executions, stale and waiting commands, unprocessed batches, rows that differ from their log, lost workers, and database problems",
      [],
      [
        SERVER_URL,
        DB_DSN,
        { name: "stale-seconds", value: "SECONDS", summary: "Silence that counts as stale, for detect; default 60" },
      ],
    ),
    doctorCommand(
      "reachability",
      "Check whether server, database and broker (BROKER_URL) answer",
      [],
      [SERVER_URL, DB_DSN],
    ),
    {
      name: "repair",
      summary: "Repair what was found",
      commands: [
        doctorCommand(
          "trigger-reaper",
          "Make the server publish the notifications of stranded commands again",
          [],
          [SERVER_URL],
        ),
        doctorCommand(
          "run-playbook",
          "Run a playbook here, such as those in playbooks/doctor",
          [{ name: "file", summary: "Playbook; a bundled one also by its name", complete: "file" }],
          [
            {
              name: "set",
              value: "KEY=VALUE",
              many: true,
              summary: "Input of the playbook, for run-playbook; may be repeated",
            },
          ],
        ),
      ],
    },
    {
      name: "mcp",
      summary: "Offer the same tools to other programs",
      commands: [
        doctorCommand(
          "serve",
          "Serve the tools over HTTP and MCP (/mcp) until stopped",
          [],
          [
            SERVER_URL,
            {
              name: "host",
              value: "ADDRESS",
              summary: "Address to listen on, for serve; default FLOW_HOST, 127.0.0.1",
            },
            {
              name: "port",
              value: "PORT",
              summary: "Port, 0 for a free one, for serve; default FLOW_DOCTOR_PORT, 8765",
            },
          ],
        ),
      ],
    },
  ],
  details: `Each command except 'mcp serve' prints one object on standard output: action, severity (ok, anomaly, repaired, error),
generated_at, data. Findings are in data.findings, each with what, since, why_it_matters, what_to_do and a command to
copy. On a terminal a table of the findings, and what to do, is printed instead; --json prints the object.

Without a database only the server is asked: it examines its own.

Exit codes
  0 nothing wrong, or repaired   2 something is wrong
  3 the doctor could not do its work, or the command line was not understood

Examples
  flow-doctor detect --stale-seconds 120
  flow-doctor reachability --server-url http://127.0.0.1:8082
  flow-doctor repair trigger-reaper
  flow-doctor repair run-playbook inspect_stale_commands --set action=inspect
  flow-doctor mcp serve --port 8765`,
  // A monitor must not mistake a mistyped option (2 elsewhere) for an anomaly.
  failureExit: 3,
};

/** The commands of the doctor. */
export const DOCTOR_COMMANDS: readonly CliEntry[] = [DOCTOR];
