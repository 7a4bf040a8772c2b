import { ACCESS_COMMANDS } from "./access/commands-access.ts";
import { type CliCommand, type CliEntry, type CliOption, type CommandGroup, EXIT } from "./command-line/command.ts";
import { JSON_SWITCH, NO_COLOR, WHICH_SERVER } from "./command-line/common-options.ts";
import { EXECUTION_COMMANDS } from "./executions/commands-executions.ts";
import { STEERING_COMMANDS } from "./executions/commands-steering.ts";
import { DOCTOR_COMMANDS } from "./operations/commands-doctor.ts";
import { SERVER_COMMANDS } from "./operations/commands-server.ts";
import { SECRET_COMMANDS } from "./secrets/commands-secrets.ts";
import { TRIGGER_COMMANDS } from "./triggers/commands-triggers.ts";

const SET: CliOption = {
  name: "set",
  value: "KEY=VALUE",
  many: true,
  summary: "Input of the run; may be repeated, later ones win",
};

const WORKLOAD: CliOption = {
  name: "workload",
  value: "JSON|@FILE",
  summary: "Inputs as one JSON object, or from a file; --set wins over it",
};

const CREDENTIALS: CliOption = {
  name: "credentials",
  value: "FILE",
  summary: "JSON file {name: {type, data}}; default FLOW_CREDENTIALS_FILE",
};

const RUN: CliCommand = {
  name: "run",
  summary: "Run a playbook and show each step as it happens",
  arguments: [
    {
      name: "playbook",
      summary: "File; or metadata.path of a document below this folder, on a server of a registered one",
      complete: "file",
    },
  ],
  options: [
    {
      name: "runtime",
      value: "WHERE",
      choices: ["local", "server", "auto"],
      summary: "Where it runs; auto, the default: here while no server is set",
    },
    ...WHICH_SERVER,
    { name: "version", value: "NUMBER", summary: "Version of the registered playbook; default the newest" },
    { name: "detach", summary: "Print the execution's id and do not wait for it" },
    { name: "draft", summary: "Run the file's text on the server without registering it" },
    { name: "step", value: "NAME", summary: "With --draft: run this step alone, with the inputs of a recorded run" },
    { name: "of", value: "EXECUTION", summary: "With --step: that run; default the newest in which the step ran" },
    { name: "dry-run", summary: "With --step: show what would run, and start nothing" },
    SET,
    WORKLOAD,
    { name: "label", value: "NAME=VALUE", many: true, summary: "Word to find a run on a server by; may be repeated" },
    { name: "target", value: "STEP", summary: "Run no further than this step" },
    CREDENTIALS,
    { name: "from", value: "STEP", summary: "Run this step and what follows it; with --using, here only" },
    { name: "using", value: "FILE", summary: "Recorded run from which the steps before --from take their results" },
    {
      name: "signal",
      value: "NAME=JSON",
      many: true,
      summary: "Signal for the steps that wait for it, with a key NAME[KEY]=JSON; here only; may be repeated",
    },
    {
      name: "answer",
      value: "STEP=WORD",
      many: true,
      summary:
        "Answer to the approval of a step: approve or reject, with data STEP=approve:JSON; here only; may be repeated",
    },
    { name: "yes", summary: "Approve whatever is asked for, here; with --step do not ask" },
    { name: "record", value: "FILE", summary: "Write every event to a file, one JSON object per line" },
    { name: "json", summary: "Print the outcome as one JSON object, alone on standard output" },
    { name: "quiet", summary: "Show no progress and no output of tools: only warnings, errors and the outcome" },
    { name: "verbose", summary: "Show tasks, iterations and arcs too" },
    NO_COLOR,
  ],
  details: `Inputs
  --set KEY=VALUE takes VALUE as JSON when it is JSON (42, true, null, "x", [1, 2], {"a": 1}), else as text. A whole
  number too large for exact arithmetic (beyond 2^53) stays text. Dots in KEY lead into maps: --set db.port=5433 gives
  {"db": {"port": 5433}}. Inputs replace whole top-level keys of the document's workload, so that 'db' then holds
  'port' alone. What a playbook declares in 'inputs' is checked before it starts; 'flow run PLAYBOOK --help' lists them.

Where it runs
  Here, unless a server is set (FLOW_SERVER_URL, or a context in use) and answers, or --runtime, --server, --context,
  --version, --draft or --detach say so; --credentials are of runs here. On a server a file is registered first, unless
  its text is that of the newest version. It takes its credentials from the server, and the sub-playbooks that it calls
  from the server's catalog. If the connection breaks, flow takes it up again; the execution does not depend on it.

Drafts
  --draft runs the file's text on the server as it is: no version is made, its triggers do not fire, and it counts in
  no statistics; what its tasks do outside is as real as in any run. With --step only that step runs, with what it had
  in an execution of the same path that has ended; on a terminal its effects are shown before it is begun. Credentials
  and sub-playbooks are those of the server. It takes the rights to change and to run the path.

Output
  Progress, warnings and tool output go to standard error, the result goes to standard output, shortened when it is
  long. With --json standard output holds exactly one object: execution_id, path, status, result, error, started_at,
  ended_at, duration_ms, steps. Nothing stands there when the run could not begin (exit code 2).

Exit codes
  0 completed   1 failed   2 invalid document or command line   130 cancelled (Ctrl-C; twice leaves at once)

Examples
  flow run hello.yaml
  flow run etl/load --runtime server --version 3
  flow run load.yaml --server http://127.0.0.1:8082 --detach --label team=data
  flow run load.yaml --help
  flow run load.yaml --set day=2026-01-31 --set db.port=5433
  flow run load.yaml --workload @inputs.json --json | jq .result
  flow run load.yaml --draft --set day=2026-01-31
  flow run load.yaml --draft --step publish --of 374404429787137
  flow run load.yaml --target fetch --record events.jsonl
  flow run load.yaml --from publish --using events.jsonl
  flow run order.yaml --signal 'payment={"amount": 12}'
  flow run release.yaml --answer 'release=approve:{"window": "now"}'`,
  explain: async () => (await import("./documents/input-help.ts")).inputHelp,
  load: async () => (await import("./run/run.ts")).runPlaybook,
};

const TEST: CliCommand = {
  name: "test",
  summary: "Run *.test.yaml files: mocked tools, virtual clock, expected outcome",
  arguments: [{ name: "file", summary: "Test files or folders", many: true, complete: "file" }],
  options: [
    JSON_SWITCH,
    { name: "tap", summary: "Print TAP 14 on standard output" },
    { name: "junit", value: "FILE", summary: "Write a JUnit XML report" },
    { name: "filter", value: "TEXT", summary: "Run only tests whose name contains this text" },
  ],
  details: `Exit codes
  0 all passed   1 a test failed   2 invalid test file or command line

Examples
  flow test playbooks/examples
  flow test load.test.yaml --filter "retries" --tap`,
  load: async () => (await import("./documents/test.ts")).runTests,
};

const REPLAY: CliCommand = {
  name: "replay",
  summary: "Decide recorded runs again with a version of their playbook; say where it goes another way",
  arguments: [{ name: "file", summary: "What 'flow export' or --record wrote", many: true, complete: "file" }],
  options: [
    { name: "playbook", value: "FILE", summary: "The version to decide with; default the one that ran" },
    JSON_SWITCH,
    NO_COLOR,
  ],
  details: `The engine alone: no tool is called, their answers are those of the record. What the playbook decides is compared with what it decided
then: which steps begin, with which input, which arcs are taken, what loops run over, how it ends. Printed is the first difference,
with its place and both values. What tasks are given is not decided by the engine, and is not compared.

Exit codes
  0 all go the same way   1 one goes another way   2 a record or the document cannot be read

Examples
  flow replay run.jsonl
  flow replay records/*.jsonl --playbook etl/load.yaml`,
  load: async () => (await import("./run/replay.ts")).replay,
  failureExit: EXIT.usage,
};

const PLAN: CliCommand = {
  name: "plan",
  summary: "Show what would run, with rendered values and masked secrets; calls nothing",
  arguments: [
    { name: "playbook", summary: "File, or metadata.path of a document below this folder", complete: "file" },
  ],
  options: [SET, WORKLOAD, CREDENTIALS, JSON_SWITCH, NO_COLOR],
  details: `Examples
  flow plan load.yaml --set day=2026-01-31`,
  load: async () => (await import("./documents/plan.ts")).planPlaybook,
};

const VALIDATE: CliCommand = {
  name: "validate",
  summary: "Check documents and list every problem with its place",
  arguments: [
    {
      name: "file",
      summary: "Documents, or folders whose .yaml and .yml files are checked",
      many: true,
      complete: "file",
    },
  ],
  options: [JSON_SWITCH, { name: "strict", summary: "Count warnings as errors" }],
  details: `Each problem is one line on standard output: file:line:column  code  message  (hint). With --json one object:
{valid, errors, warnings}. In folders, *.test.yaml files and YAML that is no playbook are left out.

Exit codes
  0 valid   2 at least one error (with --strict: or warning), or a file that cannot be read

Examples
  flow validate load.yaml
  flow validate playbooks --strict`,
  load: async () => (await import("./documents/validate.ts")).validateFiles,
};

const SCHEMA: CliCommand = {
  name: "schema",
  summary: "Print the JSON Schema of playbooks, for editors",
  arguments: [],
  options: [],
  details: `Examples
  flow schema > playbook.schema.json
  # then, as the first line of a document:
  # yaml-language-server: $schema=playbook.schema.json`,
  load: async () => (await import("./operations/config.ts")).printSchema,
};

const CONFIG: CliCommand = {
  name: "config",
  summary: "Print every setting, its value, its default and where it comes from",
  arguments: [],
  options: [JSON_SWITCH],
  load: async () => (await import("./operations/config.ts")).printConfig,
};

const COMPLETION: CliCommand = {
  name: "completion",
  summary: "Print a completion script for your shell",
  arguments: [{ name: "shell", summary: "bash, zsh or fish", choices: ["bash", "zsh", "fish"] }],
  options: [],
  details: `Examples
  source <(flow completion bash)                                     # this shell only; add it to ~/.bashrc
  flow completion zsh > "\${fpath[1]}/_flow"
  flow completion fish > ~/.config/fish/completions/flow.fish`,
  load: async () => {
    const { printCompletion } = await import("./command-line/completion.ts");
    return (input) => printCompletion(input, COMMANDS);
  },
};

const VERSION: CliCommand = {
  name: "version",
  summary: "Print the version",
  arguments: [],
  options: [],
  load: async () => (await import("./operations/config.ts")).printVersion,
};

const HELP: CliCommand = {
  name: "help",
  summary: "Explain flow, or one command",
  arguments: [{ name: "command", summary: "The command to explain", optional: true, many: true, complete: "command" }],
  options: [],
  load: async () => {
    const { printHelp } = await import("./command-line/help.ts");
    return (input) => printHelp(input, COMMAND_GROUPS);
  },
};

/** Every command, in the order of `flow --help`. */
export const COMMAND_GROUPS: readonly CommandGroup[] = [
  { title: "Run", commands: [RUN, TEST, REPLAY] },
  { title: "Look before running", commands: [VALIDATE, PLAN, SCHEMA] },
  { title: "Serve", commands: SERVER_COMMANDS },
  {
    title: "Look at a server",
    commands: [...EXECUTION_COMMANDS, ...STEERING_COMMANDS, ...TRIGGER_COMMANDS, ...DOCTOR_COMMANDS],
  },
  { title: "Log in, and manage access", commands: ACCESS_COMMANDS },
  { title: "Keep secrets", commands: SECRET_COMMANDS },
  { title: "Set up", commands: [CONFIG, COMPLETION, VERSION, HELP] },
];

/** Every command, without headings. */
export const COMMANDS: readonly CliEntry[] = COMMAND_GROUPS.flatMap((group) => group.commands);
