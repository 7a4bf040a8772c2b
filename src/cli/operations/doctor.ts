import { parsePort } from "../../platform/config/address.ts";
import { type Config, loadConfig } from "../../platform/config/config.ts";
import { packageVersion } from "../../platform/system/package-file.ts";
import { createLogger } from "../../platform/telemetry/logger.ts";
import { openDoctor } from "../../roles/doctor/open-doctor.ts";
import { DOCTOR_EXIT, type DoctorRequest, type DoctorToolName, type Outcome } from "../../schema/api/doctor.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliAction, type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { type ServerTarget, serverTarget } from "../server/target.ts";
import { jsonText } from "../terminal/text.ts";
import { warnOfArgument } from "../terminal/text-file.ts";

/** `flow doctor …`, and `flow-doctor`. */
export const DOCTOR_ACTIONS = {
  detect: (input) => report(input, useTool("detect", input)),
  reachability: (input) => report(input, useTool("reachability", input)),
  "trigger-reaper": (input) => report(input, useTool("repair_trigger_reaper", input)),
  "run-playbook": (input) => report(input, repairByPlaybook(input)),
  serve: serveDoctor,
} satisfies Record<string, CliAction>;

/**
 * Prints an outcome as JSON, or for people on a terminal (interface specification, Doctor). Its severity gives the exit
 * code.
 */
async function report({ options, io }: CliInput, running: Promise<Outcome>): Promise<number> {
  const outcome = await running;
  const isForPeople = io.stdout.isTTY === true && options["json"] !== true;
  const { writeOutcome } = await import("./doctor-text.ts");
  if (!isForPeople || !writeOutcome(outcome, io)) io.stdout.write(`${jsonText(outcome)}\n`);
  if (outcome.severity === "error") io.stderr.write(`flow doctor: ${String(outcome.data["error"])}\n`);
  if (io.signal.aborted) return EXIT.cancelled;
  return DOCTOR_EXIT[outcome.severity];
}

async function useTool(tool: DoctorToolName, input: CliInput): Promise<Outcome> {
  const { options, io } = input;
  const config = loadConfig(io.environment);
  const doctor = await openDoctor(config, await doctorTarget(input, config), io.folder);
  const dsn = textOption(options, "db-dsn");
  // A DSN is an address and a password: `user:password@`, or `password=` among its parameters.
  if (dsn !== undefined && /:[^:/@]+@|password=./.test(dsn))
    warnOfArgument(
      io,
      "the password in --db-dsn",
      "FLOW_DATABASE_URL, or FLOW_DATABASE_URL_FILE with the path of a file, is not listed",
    );
  const stale = textOption(options, "stale-seconds");
  const request: DoctorRequest = {
    ...defined({ db_dsn: dsn }),
    ...(stale !== undefined && { stale_seconds: wholeSeconds(stale) }),
  };
  return await doctor[tool](request, io.signal);
}

/** The server to examine, chosen as by other commands. */
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

/** `flow doctor mcp serve`: the role `doctor`, for the server that this command line means. */
async function serveDoctor(input: CliInput): Promise<number> {
  const { options, io } = input;
  const config = loadConfig(io.environment);
  const { url, token } = await doctorTarget(input, config);
  const { serve } = await import("../../roles/start-role.ts");
  const host = textOption(options, "host");
  const port = textOption(options, "port");
  await serve({
    role: "doctor",
    config: { ...config, serverUrl: url, serverToken: token },
    ...defined({ host }),
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
