import type { CliCommand } from "../command-line/command.ts";

const DOCTOR: CliCommand = {
  name: "doctor",
  summary: "Find what is wrong with a service, and mend it; also as 'flow-doctor'",
  arguments: [
    { name: "action", summary: "What to do", choices: ["detect", "reachability", "repair", "mcp"] },
    {
      name: "what",
      summary: "For repair: trigger-reaper or run-playbook; for mcp: serve",
      optional: true,
      choices: ["trigger-reaper", "run-playbook", "serve"],
    },
    { name: "file", summary: "Playbook, for run-playbook", optional: true, complete: "file" },
  ],
  options: [
    {
      name: "server-url",
      value: "URL",
      summary: "Server to look at; default FLOW_SERVER_URL, else the context in use",
    },
    {
      name: "db-dsn",
      value: "DSN",
      summary: "Database to look into without the server; default FLOW_DATABASE_URL, which no process list shows",
    },
    { name: "stale-seconds", value: "SECONDS", summary: "Silence that counts as stale, for detect; default 60" },
    {
      name: "set",
      value: "KEY=VALUE",
      many: true,
      summary: "Input of the playbook, for run-playbook; may be repeated",
    },
    { name: "json", summary: "Print the object also on a terminal" },
    { name: "host", value: "ADDRESS", summary: "Address to listen on, for mcp serve; default FLOW_HOST, 127.0.0.1" },
    { name: "port", value: "PORT", summary: "Port, 0 for a free one, for mcp serve; default FLOW_DOCTOR_PORT, 8765" },
  ],
  details: `Every action prints one object on standard output: action, severity (ok, anomaly, repaired, error), generated_at, data.
Findings stand in data.findings, each with what, since, why_it_matters, what_to_do and a command to copy. On a terminal a table
of the findings, and what to do, is printed instead; --json gives the object.

  detect                       stuck executions, stale and waiting commands, unprocessed batches, rows that differ from
                               their log, workers that are gone, the database's own troubles
  reachability                 whether server, database and broker (BROKER_URL) answer
  repair trigger-reaper        have the server publish the notification of stranded commands again
  repair run-playbook FILE     run a playbook here, such as those in playbooks/doctor; a bundled one also by its name
  mcp serve                    the same tools over HTTP and MCP (/mcp), until it is stopped

Without a database only the server is asked: it looks into its own.

Exit codes
  0 nothing wrong, or repaired   2 something is wrong   3 the doctor could not do its work, or was not understood

Examples
  flow-doctor detect --stale-seconds 120
  flow-doctor reachability --server-url http://127.0.0.1:8082
  flow-doctor repair trigger-reaper
  flow-doctor repair run-playbook inspect_stale_commands --set action=inspect
  flow-doctor mcp serve --port 8765`,
  // A monitor must not take a mistyped option (2 elsewhere) for an anomaly.
  failureExit: 3,
  load: async () => (await import("./doctor.ts")).runDoctor,
};

/** The commands of the doctor. */
export const DOCTOR_COMMANDS: readonly CliCommand[] = [DOCTOR];
