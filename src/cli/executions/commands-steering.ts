import type { BulkAction } from "../../schema/api/steering.ts";
import type { CliArgument, CliCommand, CliCommandSet, CliEntry } from "../command-line/command.ts";
import { SERVER_OPTIONS } from "../command-line/common-options.ts";
import { RERUN_CHOICE } from "./commands-executions.ts";

const SKIP: CliCommand = {
  name: "skip",
  summary: "End a step of an execution by hand: skip it, or complete or fail it",
  arguments: [
    { name: "execution", summary: "Id of the execution, or an unambiguous prefix of it" },
    { name: "step", summary: "Name of the step" },
  ],
  options: [
    { name: "reason", value: "TEXT", summary: "Why; required. It is kept with the execution" },
    { name: "complete", value: "JSON", summary: "Complete it with this result instead of skipping it" },
    { name: "fail", value: "CODE", summary: "Fail it with this error code instead of skipping it" },
    { name: "iteration", value: "NUMBER", summary: "Only this iteration of its loop, from 0; default: the whole loop" },
    { name: "dry-run", summary: "Only say what it would do" },
    ...SERVER_OPTIONS,
  ],
  details: `For a step that is stuck, retries, or is not to run. Its commands are cancelled and running tools are stopped, the step ends as
said, and its arcs follow as they would. A step that has not begun ends so when it is reached; in a paused execution its arcs follow when
it is resumed. Of a loop what has ended keeps its results, and what has not begun is not run.

Exit codes
  0 done   1 the step or the execution has ended, or the server cannot be reached   2 no such execution, step or iteration

Examples
  flow skip 7211 notify --reason "the mail server is down"
  flow skip 7211 load --complete '{"rows": 0}' --reason "loaded by hand"
  flow skip 7211 each --iteration 17 --fail BAD_ROW --reason "the file is broken"`,
  load: async () => (await import("./skip.ts")).skipStep,
};

const SIGNAL: CliCommand = {
  name: "signal",
  summary: "Send a signal to an execution that waits for it, or to all that do",
  arguments: [
    { name: "execution|name", summary: "Id of an execution, or the start of it; or the name alone: for everyone" },
    { name: "name", summary: "Name of the signal, as `signal` of a wait has it", optional: true },
  ],
  options: [
    { name: "data", value: "JSON", summary: "Result of the step as JSON, or @FILE; default null" },
    { name: "key", value: "TEXT", summary: "Key, for waits that have one" },
    { name: "id", value: "TEXT", summary: "Idempotency key: sending again with the same id changes nothing" },
    {
      name: "retain",
      value: "TIME",
      summary:
        "Without an execution: how long to keep it if no step waits for it, at most 24h; default 1h, 0: not at all",
    },
    ...SERVER_OPTIONS,
  ],
  details: `Sent to an execution: the step that has waited longest for it goes on. Where none waits yet, the execution keeps the signal until one does.
Sent to everyone: all steps that wait for its name and key go on, of the executions that you may execute. If there is none, the signal is
kept for a while, and the first that waits for it takes it.

Exit codes
  0 sent, or sent before under this id   1 the execution has ended, or the server cannot be reached   2 no such execution

Examples
  flow signal 7211 payment --data '{"amount": 12}'
  flow signal 7211 payment --key order-4711 --data @payment.json --id evt_93
  flow signal payment --key order-4711 --data '{"amount": 12}' --id evt_93`,
  load: async () => (await import("./signal.ts")).sendSignal,
};

/** The commands of `flow bulk` that begin an operation. */
function bulkCommand(action: Exclude<BulkAction, "backfill">, summary: string): CliCommand {
  return {
    name: action,
    summary,
    arguments: [],
    options: [
      {
        name: "filter",
        value: "QUERY",
        summary: "Which ones, as in the search of the page: 'status:failed path:etl/*'",
      },
      ...(action === "rerun" ? RERUN_CHOICE : []),
      { name: "reason", value: "TEXT", summary: "Why; it is kept with each execution" },
      ...(action === "rerun" ? [] : [{ name: "no-cascade", summary: "Leave their sub-playbooks as they are" }]),
      { name: "dry-run", summary: "Only say how many it would be, and list some of them" },
      { name: "wait", summary: "Wait until it has ended; Ctrl-C leaves it running" },
      ...SERVER_OPTIONS,
    ],
    load: async () => (await import("./bulk.ts")).bulkAction(action),
  };
}

const BULK_ID: CliArgument = { name: "id", summary: "Id of the bulk operation" };

/** The commands of `flow bulk` that change one. */
function bulkControl(name: string, what: "bulkCancel" | "bulkPause" | "bulkResume", summary: string): CliCommand {
  return {
    ...{ name, summary },
    arguments: [BULK_ID],
    options: SERVER_OPTIONS,
    load: async () => (await import("./bulk.ts")).bulkChange(what),
  };
}

const BULK: CliCommandSet = {
  name: "bulk",
  summary: "Cancel, pause, resume or repeat every execution that a filter means",
  commands: [
    bulkCommand("cancel", "Cancel them"),
    bulkCommand("pause", "Pause them"),
    bulkCommand("resume", "Resume them"),
    bulkCommand("rerun", "Repeat those that have ended, each with a new execution"),
    {
      ...{ name: "status", summary: "Show the progress of an operation, and what failed" },
      arguments: [BULK_ID],
      options: [{ name: "wait", summary: "Wait until it has ended" }, ...SERVER_OPTIONS],
      load: async () => (await import("./bulk.ts")).bulkStatus,
    },
    bulkControl("stop", "bulkCancel", "Cancel an operation: executions it has not reached stay as they are"),
    bulkControl("hold", "bulkPause", "Pause an operation"),
    bulkControl("continue", "bulkResume", "Resume an operation"),
  ],
  details: `What the filter means is fixed with the call; the servers then work it off in the background, also if one of them dies. Each
execution is decided by the rights that you have at its turn. --dry-run shows what it would be.

Exit codes
  0 begun, or with --wait done   1 some have failed, or the server cannot be reached   2 no such operation, or a filter that cannot be read

Examples
  flow bulk cancel --filter 'status:running path:etl/* label.team:data' --dry-run
  flow bulk pause --filter 'status:running path:etl/**' --reason "the warehouse is down" --wait
  flow bulk rerun --filter 'status:failed path:etl/* started:>1d' --reason "the warehouse is up again"
  flow bulk status 7300`,
};

const APPROVAL_ID: CliArgument = { name: "approval", summary: "Id of the approval" };

/** `flow approvals approve` and `reject`. */
function decideCommand(decision: "approve" | "reject", summary: string): CliCommand {
  return {
    ...{ name: decision, summary },
    arguments: [APPROVAL_ID],
    options: [
      { name: "data", value: "JSON", summary: "What its form asks for, or @FILE" },
      { name: "comment", value: "TEXT", summary: "Comment, which the step gets too" },
      ...SERVER_OPTIONS,
    ],
    load: async () => (await import("./approvals.ts")).decideApproval(decision),
  };
}

const APPROVALS: CliCommandSet = {
  name: "approvals",
  summary: "List the approvals that executions wait for, and decide them",
  commands: [
    {
      ...{ name: "list", summary: "List approvals, the newest first" },
      arguments: [],
      options: [
        { name: "mine", summary: "Only open ones that wait for your decision" },
        {
          name: "status",
          value: "WORD",
          choices: ["open", "approved", "rejected", "expired", "cancelled"],
          summary: "Only those in this state",
        },
        { name: "execution", value: "ID", summary: "Only those of this execution" },
        { name: "limit", value: "N", summary: "Most that are listed; default 100" },
        ...SERVER_OPTIONS,
      ],
      load: async () => (await import("./approvals.ts")).listApprovals,
    },
    {
      ...{ name: "show", summary: "Show what an approval asks, who may decide, and their decisions" },
      arguments: [APPROVAL_ID],
      options: SERVER_OPTIONS,
      load: async () => (await import("./approvals.ts")).showApproval,
    },
    decideCommand("approve", "Approve"),
    decideCommand("reject", "Reject: the step goes on with that as its result"),
  ],
  details: `Exit codes
  0 done   1 closed, decided by you before, or the server cannot be reached   2 no such approval, not yours, or data that do not fit its form

Examples
  flow approvals list --mine
  flow approvals approve 7212 --data '{"window": "tonight"}' --comment "after the backup"
  flow approvals reject 7212 --comment "the changelog is missing"`,
};

/** The commands that steer what a server executes. */
export const STEERING_COMMANDS: readonly CliEntry[] = [SKIP, SIGNAL, APPROVALS, BULK];
