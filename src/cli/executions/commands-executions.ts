import { ORIGIN_KINDS } from "../../schema/rules/origin.ts";
import type { CliCommand, CliEntry, CliOption } from "../command-line/command.ts";
import { NO_COLOR, SERVER_OPTIONS, WHICH_SERVER } from "../command-line/common-options.ts";
import { EXECUTION, RESULT_COMMANDS } from "./commands-results.ts";

const LAST: CliOption = { name: "last", summary: "The execution that was started last, instead of an id" };

const WIDE: CliOption = { name: "wide", summary: "All columns, untruncated" };

const EXECUTIONS: CliCommand = {
  name: "executions",
  summary: "List the executions of a server, newest first",
  arguments: [{ name: "search", summary: "What to find, see below", optional: true, many: true }],
  options: [
    {
      name: "status",
      value: "STATUS",
      choices: ["PENDING", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"],
      summary: "Only those in this state",
    },
    { name: "path", value: "PATH", summary: "Only those of this catalog path; with * or ** of all that fit" },
    { name: "label", value: "NAME=VALUE", many: true, summary: "Only those with this label; may be repeated" },
    { name: "input", value: "NAME=VALUE", many: true, summary: "Only those with this input; may be repeated" },
    { name: "error", value: "CODE", summary: "Only those whose error has this code" },
    { name: "step", value: "STEP", summary: "Only those that failed at this step, or have open work in it" },
    { name: "version", value: "NUMBER", summary: "Only those of this version" },
    { name: "started-by", value: "KIND", choices: ORIGIN_KINDS, summary: "Only those started by this" },
    { name: "parent", value: "ID", summary: "Only those that this execution called" },
    { name: "roots", summary: "Only those that no execution called" },
    { name: "since", value: "TIME", summary: "Started since: 90s, 15m, 2h, 7d, or a time as 2026-01-31T12:00:00Z" },
    { name: "until", value: "TIME", summary: "Started before then" },
    { name: "limit", value: "NUMBER", summary: "How many; default 20" },
    { name: "all", summary: "All of them" },
    WIDE,
    ...SERVER_OPTIONS,
    NO_COLOR,
  ],
  details: `On a terminal long paths are cut so that each execution takes one line; --wide shows all columns, uncut.

Search
  Terms side by side, which must all hold; the same text does in the search box of the page.
  etl, 3739                     a part of the path; the start of an id
  status:failed,cancelled       one of these states
  path:etl/* or path:etl/**     * is anything within a part of the path, ** over parts
  label.team:data  input.day:2026-01-31  error:HTTP_429  step:load  version:3  parent:7211
  started:>1h  started:<7d      within the last hour; before a week ago; also days and times
  by:mcp  is:root               started by ${ORIGIN_KINDS.join(", ")}; called by none
  A value with a space stands in quotation marks.

Examples
  flow executions
  flow executions 'status:failed path:etl/* label.team:data error:HTTP_429 started:>1h'
  flow executions --status FAILED --since 2h
  flow executions --path etl/load --all --json | jq -r '.executions[].execution_id'`,
  load: async () => (await import("./executions.ts")).showExecutions,
};

const STATUS: CliCommand = {
  name: "status",
  summary: "Show what an execution is doing, and why",
  arguments: [EXECUTION],
  options: [
    LAST,
    { name: "watch", summary: "Follow it until it has ended, as 'flow run' does; Ctrl-C leaves it running" },
    ...SERVER_OPTIONS,
    NO_COLOR,
  ],
  details: `Each step with its state, duration, attempts and loop counters. Of an open execution also what is under way: which
worker has which command, and what waits for one. Of a failed one which step failed at which line of the document, why,
and what to do next. With --json the server's answer, with --watch --json the outcome as 'flow run --json' prints it.

Exit codes
  0 shown   1 the server cannot be reached   2 no such execution
  with --watch those of 'flow run': 0 completed   1 failed   130 cancelled, or no longer watched (Ctrl-C)

Examples
  flow status 7211
  flow status --last
  flow status 7211 --watch`,
  load: async () => (await import("./status.ts")).showStatus,
};

const SHOW: CliCommand = {
  name: "show",
  summary: "Show an execution as it was after one of its events",
  arguments: [EXECUTION],
  options: [
    LAST,
    { name: "at", value: "EVENT", summary: "After this event of its log; default the newest" },
    ...SERVER_OPTIONS,
    NO_COLOR,
  ],
  details: `Its steps, its open commands, what waited for a retry, and its variables, as they were then. 'flow events' has the ids. With
--json the server's answer. However long the log is, only a short part of it is read.

Exit codes
  0 shown   1 the server cannot be reached   2 no such execution, or no such event of it

Examples
  flow show 7211 --at 7305
  flow show --last --at 7305 --json | jq .variables`,
  load: async () => (await import("./show.ts")).showPast,
};

const EVENTS: CliCommand = {
  name: "events",
  summary: "Print the event log of an execution",
  arguments: [EXECUTION],
  options: [
    LAST,
    { name: "follow", short: "f", summary: "Print events as they happen, until the execution has ended" },
    { name: "type", value: "TYPE", summary: "Only events of this type, such as step.failed" },
    { name: "after", value: "EVENT", summary: "Only events after this one" },
    { name: "limit", value: "NUMBER", summary: "How many; default 1000" },
    { name: "all", summary: "All of them" },
    { name: "json", summary: "Print each event as one line of JSON" },
    ...WHICH_SERVER,
    NO_COLOR,
  ],
  details: `One line per event: its id, time, type, step or task, and what else there is to say. With -f the log is followed through
restarts of the server; Ctrl-C ends it (exit code 130). The lines of --json are those of 'flow run --record'.

Examples
  flow events 7211
  flow events 7211 -f
  flow events --last --type task.done --json | jq -r '[.node_name, .duration_ms] | @tsv'`,
  load: async () => (await import("./events.ts")).showEvents,
};

const EXPORT: CliCommand = {
  name: "export",
  summary: "Print a run as a file that 'flow replay' and 'flow test' read",
  arguments: [EXECUTION],
  options: [
    LAST,
    { name: "max-bytes", value: "NUMBER", summary: "Largest stored result that is included; default 1048576" },
    ...WHICH_SERVER,
  ],
  details: `One JSON object per line: the execution with its document, its events (as 'flow run --record' writes them), then its results that
are stored apart, of those that are larger their sha256 alone. Sensitive values are [secret] in it.

Exit codes
  0 printed   1 the server cannot be reached   2 no such execution

Examples
  flow export 7211 > run.jsonl
  flow export --last --max-bytes 10000000 | gzip > run.jsonl.gz`,
  load: async () => (await import("./export.ts")).exportRun,
};

const LOGS: CliCommand = {
  name: "logs",
  summary: "Print what the tasks of an execution wrote",
  arguments: [EXECUTION],
  options: [
    LAST,
    { name: "step", value: "STEP", summary: "Only what the tasks of this step wrote, without sub-playbooks" },
    { name: "follow", short: "f", summary: "Print lines as they arrive, until the execution has ended" },
    { name: "json", summary: "Print each line as one line of JSON" },
    ...WHICH_SERVER,
    NO_COLOR,
  ],
  details: `What python prints, a shell's output, a database's notices: the last 200 lines and 8 KiB of each run of a task, and while it
runs new ones every two seconds; then those of the sub-playbooks that it called, each behind its path. Secrets are [secret]; of a task whose result is sensitive no line is kept.

Examples
  flow logs 7211
  flow logs --last --step load -f
  flow logs 7211 --json | jq -r .text`,
  load: async () => (await import("./logs.ts")).showLogs,
};

const CANCEL: CliCommand = {
  name: "cancel",
  summary: "Cancel an execution, and the sub-playbooks that it called",
  arguments: [EXECUTION],
  options: [
    LAST,
    { name: "reason", value: "TEXT", summary: "Why; it is kept with the execution" },
    { name: "no-cascade", summary: "Leave its sub-playbooks running" },
    ...SERVER_OPTIONS,
  ],
  details: `Its open commands are cancelled and running tools are stopped. Cancelling an ended execution changes nothing and is no error.

Examples
  flow cancel 7211 --reason "wrong day"
  flow cancel --last`,
  load: async () => (await import("./executions.ts")).cancelOne,
};

const DRY_RUN: CliOption = { name: "dry-run", summary: "Only say what it would do" };

const PAUSE: CliCommand = {
  name: "pause",
  summary: "Pause an execution, and the sub-playbooks that it called",
  arguments: [EXECUTION],
  options: [
    LAST,
    { name: "reason", value: "TEXT", summary: "Why; it is kept with the execution" },
    { name: "no-cascade", summary: "Leave its sub-playbooks running" },
    DRY_RUN,
    ...SERVER_OPTIONS,
  ],
  details: `Nothing further is issued or claimed in it. What workers have of it goes on, retries included, and is recorded; what follows
from it waits for 'flow resume'. Time limits run on, and take effect when it is resumed. Pausing a paused execution changes nothing.

Exit codes
  0 it is paused   1 it has ended, or the server cannot be reached   2 no such execution

Examples
  flow pause 7211 --reason "quota is used up until noon"
  flow pause --last --dry-run`,
  load: async () => (await import("./pause.ts")).pauseOne,
};

const RESUME: CliCommand = {
  name: "resume",
  summary: "Resume a paused execution, and the sub-playbooks that it called",
  arguments: [EXECUTION],
  options: [
    LAST,
    { name: "reason", value: "TEXT", summary: "Why; it is kept with the execution" },
    { name: "no-cascade", summary: "Leave its sub-playbooks paused" },
    DRY_RUN,
    ...SERVER_OPTIONS,
  ],
  details: `It goes on with everything that came due meanwhile. Resuming an execution that runs changes nothing.

Exit codes
  0 it runs   1 it has ended, or the server cannot be reached   2 no such execution

Examples
  flow resume 7211
  flow resume 7211 --dry-run --json`,
  load: async () => (await import("./pause.ts")).resumeOne,
};

/** What of an execution runs again, and with what: for one, and for many at once. */
export const RERUN_CHOICE: readonly CliOption[] = [
  { name: "from", value: "STEP", many: true, summary: "Run this step again, and all that follow; 'start' for all" },
  { name: "failed", summary: "Run those again that failed or were open at the end (default if it failed)" },
  { name: "only", summary: "These steps and nothing after them" },
  { name: "input", value: "JSON", summary: "Replace keys of the workload: JSON, or @FILE" },
  { name: "set", value: "KEY=VALUE", many: true, summary: "Replace one key of the workload" },
  { name: "variable", value: "KEY=VALUE", many: true, summary: "Set a variable" },
  { name: "step-input", value: "STEP=JSON", many: true, summary: "Replace keys of a step's input" },
  { name: "version", value: "VERSION", summary: "Version of the playbook: same (default), latest or a number" },
  { name: "no-reuse-iterations", summary: "Run all iterations of a loop that failed" },
];

const RERUN: CliCommand = {
  name: "rerun",
  summary: "Begin a new execution that repeats one that has ended, from some of its steps on",
  arguments: [EXECUTION],
  options: [
    LAST,
    ...RERUN_CHOICE,
    { name: "reuse-child", value: "STEP=ID", many: true, summary: "Take the result of this completed sub-playbook" },
    { name: "reason", value: "TEXT", summary: "Why; it is kept with the new execution" },
    DRY_RUN,
    { name: "yes", summary: "Do not ask" },
    ...SERVER_OPTIONS,
  ],
  details: `What ran before these steps is taken over: it is not run again, and its results stay where they are. A loop that failed runs
only the iterations that failed, are missing, or have another item. The old execution stays as it is. On a terminal it shows the
plan and asks: which steps run again, and which of them have effects outside.

Exit codes
  0 it has begun   1 the original has not ended, or the server cannot be reached
  2 no such execution or step, nothing failed, or a result that is needed is gone

Examples
  flow rerun 7211
  flow rerun 7211 --from load --set day=2026-01-31 --dry-run
  flow rerun --last --from report --only --step-input 'report={"format": "pdf"}'`,
  load: async () => (await import("./rerun.ts")).rerunOne,
};

const WORKERS: CliCommand = {
  name: "workers",
  summary: "List the workers of a server",
  arguments: [],
  options: [WIDE, ...SERVER_OPTIONS, NO_COLOR],
  details: `Each with its state (ready, draining, offline, or stale: silent for too long), how many commands it has of those that it
takes at a time, the time since its last heartbeat, its labels, and the kinds of task that it runs. On a terminal long columns
are cut; --wide shows all of them, uncut.

Examples
  flow workers
  flow workers --json | jq '[.items[].capacity] | add'`,
  load: async () => (await import("./workers.ts")).showWorkers,
};

const LINEAGE: CliCommand = {
  name: "lineage",
  summary: "Show where an execution comes from, and what came from it",
  arguments: [EXECUTION],
  options: [
    LAST,
    { name: "limit", value: "NUMBER", summary: "How many that came from it; default 100" },
    { name: "all", summary: "All of them" },
    ...SERVER_OPTIONS,
    NO_COLOR,
  ],
  details: `A tree: who called it, or what it repeats, up to the first; below it what it has called, and what repeats it. Those that you may
not view are left out. Of a deleted execution its path and status are left while others descend from it.

Examples
  flow lineage 7211
  flow lineage 7211 --all --json | jq -r '.descendants[] | select(.by == "rerun").execution_id'`,
  load: async () => (await import("./lineage.ts")).showLineage,
};

const STATS: CliCommand = {
  name: "stats",
  summary: "Show how executions ended over time, how long they took, and which steps are slow",
  arguments: [{ name: "path", summary: "Of this playbook; with * or ** of all that fit; default all", optional: true }],
  options: [
    { name: "since", value: "TIME", summary: "Ended since: 90s, 15m, 2h, 7d, or a time; default 24h" },
    { name: "until", value: "TIME", summary: "Ended before then; default now" },
    { name: "bucket", value: "LENGTH", choices: ["1m", "5m", "1h", "1d"], summary: "What is added up; default 1h" },
    {
      name: "sort",
      value: "ORDER",
      choices: ["failed", "slowest", "count"],
      summary: "Order of the playbooks; default those with most failures first",
    },
    ...SERVER_OPTIONS,
    NO_COLOR,
  ],
  details: `An execution counts where it ended, also after it was deleted. Durations are within 5 %. They are some seconds behind.

Examples
  flow stats
  flow stats etl/load --since 7d --bucket 1d
  flow stats 'etl/**' --sort slowest --json | jq -r '.paths[].path'`,
  load: async () => (await import("./stats.ts")).showStats,
};

/** The commands that show what a server executes. */
export const EXECUTION_COMMANDS: readonly CliEntry[] = [
  EXECUTIONS,
  STATS,
  STATUS,
  SHOW,
  LINEAGE,
  EVENTS,
  LOGS,
  EXPORT,
  PAUSE,
  RESUME,
  RERUN,
  CANCEL,
  WORKERS,
  ...RESULT_COMMANDS,
];
