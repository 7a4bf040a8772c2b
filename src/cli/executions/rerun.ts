import type { RerunAnswer, RerunBody } from "../../schema/api/steering.ts";
import { EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type JsonObject, setOwn } from "../../schema/words/json.ts";
import { type CliInput, type CliValues, EXIT, listOption, textOption } from "../command-line/command.ts";
import { applySet, readInputs, readMap } from "../documents/inputs.ts";
import { startOnServer } from "../server/executions-api.ts";
import { type CommandServer, openServer } from "../server/open-server.ts";
import { isConfirmed } from "../terminal/confirm.ts";
import { fitToTerminal, writeTable } from "../terminal/table.ts";
import { cleanText, jsonText, plural } from "../terminal/text.ts";
import { executionArgument } from "../watch/execution-id.ts";

/** `flow rerun`: a new execution that repeats another one, or the plan of it. */
export async function rerunOne(input: CliInput): Promise<number> {
  const { options, io } = input;
  const body = await rerunBody(options, io.folder);
  const server = await openServer(input);
  const id = await executionArgument(input, server.target);
  const isJson = options["json"] === true;
  if (options["dry-run"] === true) {
    const plan = await planOf(server, id, body);
    if (isJson) io.stdout.write(`${jsonText(plan)}\n`);
    else writePlan(input, plan);
    return EXIT.ok;
  }
  const asks = !isJson && options["yes"] !== true && io.stdin?.isTTY === true && io.stdout.isTTY === true;
  if (asks) {
    writePlan(input, await planOf(server, id, body));
    if (!(await isConfirmed(io, "Begin it?"))) {
      io.stdout.write("Nothing was begun\n");
      return EXIT.ok;
    }
  }
  const call = { params: { execution_id: id }, body };
  const answer = await startOnServer(server.target, EXECUTION_ROUTES.rerun, call, io.signal);
  if (isJson) {
    io.stdout.write(`${jsonText(answer)}\n`);
    return EXIT.ok;
  }
  const { execution_id: begun = "", reused, will_run: willRun, warnings = [] } = answer;
  for (const warning of warnings) io.stderr.write(`warning: ${cleanText(warning)}\n`);
  io.stdout.write(`Execution ${begun} repeats ${id}: ${plural(reused, "step")} reused, ${namesOf(willRun)}\n`);
  io.stdout.write(`Next: flow status ${begun} --watch\n`);
  return EXIT.ok;
}

async function planOf(server: CommandServer, id: string, body: RerunBody): Promise<RerunAnswer> {
  const call = { params: { execution_id: id }, body: { ...body, dry_run: true } };
  return await server.call(EXECUTION_ROUTES.rerun, call);
}

/** Prints what a rerun would do. */
export function writePlan(
  input: CliInput,
  { rerun_of: id, path, version, reused, will_run: willRun, steps = [] }: RerunAnswer,
): void {
  const { io } = input;
  const of = version === 0 ? "as the draft" : `version ${version}`;
  const what = `Rerun of ${id}, ${cleanText(path)} ${of}: ${plural(reused, "step")} reused, ${namesOf(willRun)}`;
  io.stdout.write(`${what}\n\n`);
  const certain = new Set(willRun);
  const rows = steps.map(({ step, action, kind, effect, protected_by: by }) => [
    cleanText(step),
    action === "reuse" ? "reused" : certain.has(step) ? "runs" : "may run",
    kind,
    action === "reuse" || effect === null ? "" : `${effect}${by === null ? "" : ", protected by its idempotency key"}`,
  ]);
  writeTable(io.stdout, ["STEP", "ACTION", "KIND", "EFFECT"], rows, fitToTerminal(io, ["STEP", "EFFECT"]));
}

/** Steps that a sentence names. */
const NAMED_MAX = 5;

/** The steps that run, in a sentence. */
export function namesOf(steps: readonly string[]): string {
  const named = steps.slice(0, NAMED_MAX).map(cleanText).join(", ");
  const more = steps.length > NAMED_MAX ? ` and ${steps.length - NAMED_MAX} more` : "";
  return steps.length === 0 ? "no step runs for certain" : `${named}${more} ${steps.length === 1 ? "runs" : "run"}`;
}

/** What the options of a rerun ask for. Throws `FlowError` USAGE. */
export async function rerunBody(options: CliValues, folder: string): Promise<RerunBody> {
  const names = listOption(options, "from");
  const isFailed = options["failed"] === true;
  if (isFailed && names.length > 0) throw new FlowError("USAGE", "Give --from or --failed, not both");
  const isStart = names.length === 1 && names[0] === "start";
  const from = isFailed ? ("failed" as const) : isStart ? ("start" as const) : names.length > 0 ? names : undefined;
  const input = await readInputs(options, folder, "input");
  const variables: JsonObject = {};
  for (const assignment of listOption(options, "variable")) applySet(variables, assignment, "variable");
  const stepInput: Record<string, JsonObject> = {};
  for (const given of listOption(options, "step-input")) {
    const [step, json] = assigned(given, "step-input", `load={"day": "2026-01-31"}`);
    setOwn(stepInput, step, await readMap(json, folder, "step-input"));
  }
  const children: Record<string, string> = {};
  for (const given of listOption(options, "reuse-child")) {
    const [step, id] = assigned(given, "reuse-child", "load=7212");
    setOwn(children, step, id);
  }
  return {
    ...defined({ from, version: versionOf(options), reason: textOption(options, "reason") }),
    ...(options["only"] === true && { only: true }),
    ...(options["no-reuse-iterations"] === true && { reuse_iterations: false }),
    ...(Object.keys(input).length > 0 && { input }),
    ...(Object.keys(variables).length > 0 && { variables }),
    ...(Object.keys(stepInput).length > 0 && { step_input: stepInput }),
    ...(Object.keys(children).length > 0 && { reuse_children: children }),
  };
}

function assigned(text: string, option: string, example: string): [name: string, value: string] {
  const equals = text.indexOf("=");
  if (equals > 0) return [text.slice(0, equals), text.slice(equals + 1)];
  throw new FlowError("USAGE", `--${option} needs STEP=…, as in --${option} '${example}'; got '${text}'`);
}

function versionOf(options: CliValues): RerunBody["version"] {
  const text = textOption(options, "version");
  if (text === undefined || text === "same" || text === "latest") return text;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new FlowError("USAGE", `--version is 'same', 'latest' or a number, got '${text}'`);
}
