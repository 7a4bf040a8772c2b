import type { CliCommand, CliEntry } from "../command-line/command.ts";
import { SERVER_OPTIONS } from "../command-line/common-options.ts";

const SKIP: CliCommand = {
  name: "skip",
  summary: "End a step of an execution by hand: skip it, or complete or fail it",
  arguments: [
    { name: "execution", summary: "Id of the execution, or the start of it where no other one begins so" },
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

/** The commands that steer what a server executes. */
export const STEERING_COMMANDS: readonly CliEntry[] = [SKIP];
