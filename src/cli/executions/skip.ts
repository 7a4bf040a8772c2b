import { EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import { STEERING_ROUTES } from "../../schema/routes/steering.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import { type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { type CommandServer, openServer } from "../server/open-server.ts";
import { jsonText, plural } from "../terminal/text.ts";
import { executionArgument } from "../watch/execution-id.ts";

/** How the words of the command line want the step to end. */
interface Asked {
  step: string;
  body: {
    action: "skip" | "complete" | "fail";
    reason: string;
    iteration?: number;
    result?: Json;
    error?: { code: string };
  };
}

/** `flow skip`: ends a step of an execution, or an iteration of its loop, as a person says. */
export async function skipStep(input: CliInput): Promise<number> {
  const { options, io } = input;
  const { step, body } = asked(input);
  const server = await openServer(input);
  const id = await executionArgument(input, server.target);
  if (options["dry-run"] === true) return await preview(input, server, id, { step, body });
  const answer = await server.call(STEERING_ROUTES.override, { params: { execution_id: id, step }, body });
  if (options["json"] === true) {
    io.stdout.write(`${jsonText(answer)}\n`);
    return EXIT.ok;
  }
  io.stdout.write(
    `${whatOf(step, body.iteration)} of execution ${id} was ${DONE[body.action]}${nextOf(answer.status, body.iteration)}\n`,
  );
  return EXIT.ok;
}

const DONE = { skip: "skipped", complete: "completed", fail: "failed" } as const;

function nextOf(status: string, iteration: number | undefined): string {
  if (status === "PENDING") return ": it ends so when it is reached";
  if (status !== "RUNNING") return "";
  // Only a pause keeps a step open that has been ended as a whole.
  return iteration === undefined ? ": it ends so when the execution is resumed" : "; the step is RUNNING";
}

function whatOf(step: string, iteration: number | undefined): string {
  return iteration === undefined ? `Step '${step}'` : `Iteration ${iteration} of step '${step}'`;
}

/** Throws `FlowError` USAGE for words that contradict each other, or say too little. */
function asked({ arguments: [, step = ""], options }: CliInput): Asked {
  const reason = textOption(options, "reason");
  if (reason === undefined || reason.trim() === "") {
    throw new FlowError("USAGE", `Why? Give --reason "…": it is kept with the execution, for those who wonder later`);
  }
  const result = textOption(options, "complete");
  const code = textOption(options, "fail");
  if (result !== undefined && code !== undefined) {
    throw new FlowError("USAGE", "--complete and --fail exclude each other; give only one");
  }
  const iteration = iterationOf(textOption(options, "iteration"));
  const common = { reason, ...(iteration !== undefined && { iteration }) };
  if (result !== undefined) return { step, body: { action: "complete", ...common, result: jsonOf(result) } };
  if (code !== undefined) return { step, body: { action: "fail", ...common, error: { code } } };
  return { step, body: { action: "skip", ...common } };
}

function iterationOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new FlowError("USAGE", `--iteration takes a whole number from 0; got '${text}'`);
}

function jsonOf(text: string): Json {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new FlowError("USAGE", `--complete takes JSON, such as '{"rows": 0}' or null: ${messageOf(cause)}`, {
      cause,
    });
  }
}

/** `--dry-run`: what it would do, from what the execution does now. */
async function preview(
  { options, io }: CliInput,
  { call }: CommandServer,
  id: string,
  { step, body: { action, iteration } }: Asked,
): Promise<number> {
  const {
    status,
    ended_at,
    steps,
    commands = [],
  } = await call(EXECUTION_ROUTES.detail, {
    params: { execution_id: id },
  });
  const known = steps.find(({ name }) => name === step);
  if (known === undefined) {
    const names = steps.map(({ name }) => name).join(", ");
    throw new FlowError("NOT_FOUND", `Execution ${id} has no step '${step}'; its steps are: ${names}`);
  }
  const isOpen = ended_at === null && ["PENDING", "RUNNING", "WAITING"].includes(known.status);
  const stopped = commands.filter(({ step: name, iterations: range }) => {
    if (name !== step) return false;
    return iteration === undefined || (range !== undefined && range.from <= iteration && iteration < range.to);
  }).length;
  const plan = { execution_id: id, step, status: known.status, action: isOpen ? action : "none", commands: stopped };
  if (options["json"] === true) {
    io.stdout.write(`${jsonText(plan)}\n`);
    return EXIT.ok;
  }
  const what = whatOf(step, iteration);
  const of = ended_at === null ? known.status : `execution ${id} has ended, ${status}`;
  io.stdout.write(`${what} (${of}): ${isOpen ? `it would be ${DONE[action]}` : "nothing would change"}\n`);
  if (!isOpen) return EXIT.ok;
  if (known.status === "PENDING") io.stdout.write("  when it is reached\n");
  else io.stdout.write(`  ${plural(stopped, "command")} would be stopped\n`);
  if (status === "PAUSED") io.stdout.write("  what follows waits for the resumption\n");
  return EXIT.ok;
}
