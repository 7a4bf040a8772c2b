import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { type Config, loadConfig } from "../../platform/config/config.ts";
import { CATALOG_ROUTES } from "../../schema/routes/catalog.ts";
import { HEALTH_ROUTES } from "../../schema/routes/system.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliInput, type CliIo, type CliValues, textOption } from "../command-line/command.ts";
import { callServer } from "../server/client.ts";
import { DEFAULT_ORIGIN, type ServerTarget, serverTarget } from "../server/target.ts";
import { cleanText } from "../terminal/text.ts";

/**
 * `flow run`: one playbook from its document to its outcome, in this process or on a server. Returns the exit code; throws
 * `FlowError` if the run cannot start.
 */
export async function runPlaybook(input: CliInput): Promise<number> {
  const config = loadConfig(input.io.environment);
  const runtime = await chooseRuntime(input, config);
  if (runtime.where === "local") {
    // The tools and the local runtime are loaded for this alone.
    const { runLocally } = await import("./run-local.ts");
    return await runLocally(input, config);
  }
  const { runOnServer } = await import("./run-server.ts");
  return await runOnServer(input, runtime.target);
}

/** Where a playbook runs. */
type Runtime = { where: "local" } | { where: "server"; target: ServerTarget };

/** Options that select a run on a server. */
const SERVER_OPTIONS = ["server", "context", "version", "detach", "draft"] as const;
/** Options that select a run here. */
const LOCAL_OPTIONS = ["credentials", "from", "using", "signal", "answer", "yes"] as const;
/** Longest wait for a server that the command line does not name. */
const HEALTH_MS = 3_000;

/**
 * Decides where `flow run` runs (`--runtime`). `auto`, the default, chooses a server when one of its options is given, or when
 * one is configured (FLOW_SERVER_URL, a context in use) that answers, and that has the playbook unless it is a file here; else
 * this process. Throws `FlowError` USAGE for options that exclude each other, and what `serverTarget` throws.
 */
async function chooseRuntime(input: CliInput, config: Config): Promise<Runtime> {
  const { options, io } = input;
  const runtime = textOption(options, "runtime") ?? "auto";
  checkDraftOptions(options);
  const given = SERVER_OPTIONS.filter((name) => options[name] !== undefined).map((name) => `--${name}`);
  // A test of a step asks, and `--yes` answers it.
  const isAsked = (name: string) => name === "yes" && options["step"] !== undefined;
  const credentials = LOCAL_OPTIONS.filter((name) => options[name] !== undefined && !isAsked(name)).map(
    (name) => `--${name}`,
  );
  if (runtime === "local") {
    if (given.length > 0) throw excluded("--runtime local", given);
    return { where: "local" };
  }
  if (runtime === "server" || given.length > 0) {
    // The credentials of a server stay there, and a record is of no use to it; files of them are not sent around. Signals have `flow signal`,
    // answers `flow approvals`.
    if (credentials.length > 0) throw excluded(given[0] ?? "--runtime server", credentials);
    return { where: "server", target: await serverTarget(input, config) };
  }
  if (credentials.length > 0) return { where: "local" };
  const target = await serverTarget(input, config);
  if (target.origin === DEFAULT_ORIGIN) return { where: "local" };
  const problem = await unavailableReason(target, input.arguments[0] ?? "", io);
  if (problem === undefined) return { where: "server", target };
  io.stderr.write(`${cleanText(problem)}\n`);
  return { where: "local" };
}

/** Throws `FlowError` USAGE for options that mean nothing without another. */
function checkDraftOptions(options: CliValues): void {
  const needs = (names: readonly string[], other: string) => {
    const [name] = names.filter((one) => options[one] !== undefined);
    if (name !== undefined && options[other] === undefined) {
      throw new FlowError("USAGE", `--${name} goes with --${other}: flow run FILE --draft --step NAME --of EXECUTION`);
    }
  };
  needs(["of", "dry-run"], "step");
  needs(["step"], "draft");
  if (options["draft"] === true && options["version"] !== undefined) throw excluded("--draft", ["--version"]);
  const whole = ["set", "workload", "target", "label"].filter((name) => options[name] !== undefined);
  if (options["step"] === undefined || whole.length === 0) return;
  const why = "A step has the inputs that it had in the execution";
  throw new FlowError("USAGE", `--step and --${whole[0]} exclude each other. ${why}`);
}

function excluded(one: string, others: readonly string[]): FlowError {
  return new FlowError("USAGE", `${one} and ${others.join(", ")} exclude each other; give only one`);
}

/** As the local runtime finds it: with or without its ending. */
async function isFile(word: string, { folder }: CliIo): Promise<boolean> {
  const all = ["", ".yaml", ".yml"].map((ending) => stat(resolve(folder, word + ending)).catch(() => undefined));
  return (await Promise.all(all)).some((found) => found?.isFile() === true);
}

/** Undefined: the server is there and can run it. */
async function unavailableReason(target: ServerTarget, word: string, io: CliIo): Promise<string | undefined> {
  const { signal } = io;
  try {
    if (await isFile(word, io)) await callServer(target, HEALTH_ROUTES.health, { signal, timeoutMs: HEALTH_MS });
    else await callServer(target, CATALOG_ROUTES.resource, { params: { path: word }, signal });
    return undefined;
  } catch (error) {
    if (!(error instanceof FlowError)) throw error;
    if (error.code === "NOT_FOUND")
      return `${target.url} (${target.origin}) has no entry '${word}': looking for it here`;
    if (error.code === "SERVER_UNREACHABLE") return `warning: running in this process: ${error.message}`;
    throw error;
  }
}
