import { parsePort } from "../../platform/config/address.ts";
import { type Config, loadConfig } from "../../platform/config/config.ts";
import { packageVersion } from "../../platform/system/package-file.ts";
import { createLogger } from "../../platform/telemetry/logger.ts";
import { openDoctor } from "../../roles/doctor/open-doctor.ts";
import { DOCTOR_EXIT, type DoctorAsked, type DoctorToolName, type Outcome } from "../../schema/api/doctor.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { type ServerTarget, serverTarget } from "../server/target.ts";
import { jsonText } from "../terminal/text.ts";

/** What an action is called on the command line, and which options are of use to it. */
const ACTIONS: Readonly<Record<string, { options: readonly string[]; tool?: DoctorToolName }>> = {
  detect: { options: ["server-url", "db-dsn", "stale-seconds"], tool: "detect" },
  reachability: { options: ["server-url", "db-dsn"], tool: "reachability" },
  "repair trigger-reaper": { options: ["server-url"], tool: "repair_trigger_reaper" },
  "repair run-playbook": { options: ["set"] },
  "mcp serve": { options: ["server-url", "host", "port"] },
};

/**
 * `flow doctor`, and `flow-doctor`: one action, whose outcome gives the exit code and is printed as JSON, or for people on a
 * terminal (interface specification, Doctor). Throws `FlowError` USAGE, and what settings throw.
 */
export async function runDoctor(input: CliInput): Promise<number> {
  const { io } = input;
  const name = actionOf(input);
  const config = loadConfig(io.environment);
  if (name === "mcp serve") return await serveDoctor(input, config);
  const tool = ACTIONS[name]?.tool;
  const outcome = tool === undefined ? await repairByPlaybook(input) : await useTool(tool, input, config);
  const isForPeople = io.stdout.isTTY === true && input.options["json"] !== true;
  const { writeOutcome } = await import("./doctor-text.ts");
  if (!isForPeople || !writeOutcome(outcome, io)) io.stdout.write(`${jsonText(outcome)}\n`);
  if (outcome.severity === "error") io.stderr.write(`flow doctor: ${String(outcome.data["error"])}\n`);
  if (io.signal.aborted) return EXIT.cancelled;
  return DOCTOR_EXIT[outcome.severity];
}

/** The action that the words name. Throws `FlowError` USAGE for words and options that do not go together. */
function actionOf({ arguments: words, options }: CliInput): string {
  const [action = "", what, file] = words;
  const name = what === undefined ? action : `${action} ${what}`;
  const known = ACTIONS[name];
  const usage = (message: string) => new FlowError("USAGE", `${message}\nSee 'flow doctor --help'.`);
  if (known === undefined) {
    const ways = Object.keys(ACTIONS).filter((way) => way.startsWith(`${action} `) || way === action);
    throw usage(`'flow doctor ${name}' is no action; there is: ${ways.join(", ")}`);
  }
  const needsFile = name === "repair run-playbook";
  if (needsFile && file === undefined) throw usage("'flow doctor repair run-playbook' needs the playbook's file");
  if (!needsFile && file !== undefined) throw usage(`'flow doctor ${name}' does not take '${file}'`);
  const unexpected = Object.keys(options).find((option) => option !== "json" && !known.options.includes(option));
  if (unexpected !== undefined) throw usage(`'flow doctor ${name}' does not take --${unexpected}`);
  return name;
}

async function useTool(tool: DoctorToolName, input: CliInput, config: Config): Promise<Outcome> {
  const { options, io } = input;
  const doctor = await openDoctor(config, await doctorTarget(input, config), io.folder);
  const dsn = textOption(options, "db-dsn");
  const stale = textOption(options, "stale-seconds");
  const request: DoctorAsked = {
    ...(dsn !== undefined && { db_dsn: dsn }),
    ...(stale !== undefined && { stale_seconds: wholeSeconds(stale) }),
  };
  return await doctor[tool](request, io.signal);
}

/** The server that is meant, as other commands find it. */
async function doctorTarget(input: CliInput, config: Config): Promise<ServerTarget> {
  const url = textOption(input.options, "server-url");
  const target = await serverTarget({ ...input, options: url === undefined ? {} : { server: url } }, config);
  if (target.gateway === undefined) return target;
  const hint = "The doctor calls the server itself, with the operator's token: --server-url, FLOW_SERVER_TOKEN";
  throw new FlowError("USAGE", `The context in use (${target.origin}) is a gateway. ${hint}`);
}

function wholeSeconds(text: string): number {
  const seconds = Number(text);
  if (/^\d{1,8}$/.test(text) && seconds >= 1 && seconds <= 31_536_000) return seconds;
  throw new FlowError("USAGE", `--stale-seconds must be a whole number from 1 to 31536000, got '${text}'`);
}

async function repairByPlaybook(input: CliInput): Promise<Outcome> {
  const { runRepair } = await import("../run/doctor-playbook.ts");
  return await runRepair(input);
}

/** `mcp serve`: the role `doctor`, with the server that this command line means. */
async function serveDoctor(input: CliInput, config: Config): Promise<number> {
  const { options, io } = input;
  const { url, token } = await doctorTarget(input, config);
  const { serve } = await import("../../roles/start-role.ts");
  const host = textOption(options, "host");
  const port = textOption(options, "port");
  await serve({
    role: "doctor",
    config: { ...config, serverUrl: url, serverToken: token },
    ...(host !== undefined && { host }),
    ...(port !== undefined && { port: parsePort("--port", port) }),
    folder: io.folder,
    version: await packageVersion(),
    entry: process.argv[1] ?? "",
    logger: createLogger(config.logLevel, io.stderr, { role: "doctor" }),
    signal: io.signal,
    onReady: (ready) => {
      if (ready.what === "doctor") io.stdout.write(`flow doctor is ready at ${ready.url}\n`);
    },
  });
  return EXIT.ok;
}
