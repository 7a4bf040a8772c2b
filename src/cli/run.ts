import { resolve } from "node:path";
import { createFileCredentials } from "../adapters/file-credentials.ts";
import type { ExecutionState } from "../engine/state.ts";
import { nearest } from "../language/nearest.ts";
import type { LocalPlaybook } from "../local/catalog.ts";
import { createLocalRuntime, type LocalRuntime } from "../local/runtime.ts";
import { type Config, loadConfig } from "../platform/config.ts";
import { FlowError } from "../schema/errors.ts";
import type { FlowEvent } from "../schema/event.ts";
import { type JsonObject, setOwn } from "../schema/json.ts";
import { createToolRegistry, type ToolRegistry } from "../tools/registry.ts";
import { type CliInput, type CliValues, EXIT, textOption } from "./command.ts";
import { credentialsFile } from "./credentials-file.ts";
import { readInputs } from "./inputs.ts";
import { loadNamed } from "./named-playbook.ts";
import { openProgress } from "./open-progress.ts";
import { NO_PROGRESS, type Progress } from "./progress.ts";
import { createRecorder, type Recorder } from "./record.ts";
import { createRunModel, type RunModel } from "./run-model.ts";
import { prepareOutcome, writeWarnings } from "./summary.ts";
import { cleanText } from "./text.ts";

/**
 * `flow run`: one playbook from its document to its outcome, in this process. Gives the exit code; throws `FlowError` for
 * what keeps the run from beginning.
 */
export async function runPlaybook(input: CliInput): Promise<number> {
  const { options, io } = input;
  if (textOption(options, "runtime") === "server") {
    const hint = "This version runs playbooks in its own process: use --runtime local, or leave the option out";
    throw new FlowError(
      "USAGE",
      `--runtime server comes with the service, which is not part of this version yet. ${hint}`,
    );
  }
  const config = loadConfig(io.environment);
  const inputs = await readInputs(options, io.folder);
  const watch = createWatch();
  const parts = buildRuntime(config, await credentialsFile(config, options, io.folder), watch);
  try {
    const playbook = await loadNamed(parts.runtime, input.arguments[0] ?? "", io);
    const target = checkTarget(playbook, textOption(options, "target"));
    writeWarnings(playbook.warnings, io);
    const record = textOption(options, "record");
    if (record !== undefined)
      watch.recorder = createRecorder(record, io.folder, filesRead(playbook, options, io.folder));
    watch.progress = openProgress(watch.model, options, io);
    return await runWatched(parts, playbook, { input: inputs, ...(target !== undefined && { target }) }, watch, input);
  } finally {
    await parts.runtime.close();
    await parts.tools()?.close();
  }
}

/** Everybody who looks on while the run goes on. */
interface Watch {
  model: RunModel;
  progress: Progress;
  recorder: Recorder | undefined;
}

function createWatch(): Watch {
  return { model: createRunModel(), progress: NO_PROGRESS, recorder: undefined };
}

interface RuntimeParts {
  runtime: LocalRuntime;
  tools(): ToolRegistry | undefined;
}

function buildRuntime(config: Config, credentials: string | undefined, watch: Watch): RuntimeParts {
  let tools: ToolRegistry | undefined;
  const runtime = createLocalRuntime({
    tools: (store) => {
      tools = createToolRegistry({
        allowPrivate: config.httpAllowPrivate,
        store,
        ...(config.workerTools !== "all" && { kinds: config.workerTools }),
        ...(config.python !== undefined && { python: { pythonPath: config.python } }),
      });
      return tools;
    },
    credentials: createFileCredentials(credentials, config.environment),
    env: allowedEnvironment(config),
    capacity: config.localCapacity,
    observe(state: ExecutionState, events: readonly FlowEvent[]) {
      watch.recorder?.observe(state, events);
      watch.progress.observe(watch.model.observe(state, events), events);
    },
    log: (line) => watch.progress.log(line),
  });
  return { runtime, tools: () => tools };
}

function allowedEnvironment(config: Config): JsonObject {
  const allowed: JsonObject = {};
  for (const name of config.templateEnv) {
    const value = config.environment[name];
    if (value !== undefined) setOwn(allowed, name, value);
  }
  return allowed;
}

/** The files that this command line names for reading: what is written must not be one of them. */
function filesRead(playbook: LocalPlaybook, options: CliValues, folder: string): string[] {
  const workload = textOption(options, "workload");
  const named = [
    workload?.startsWith("@") === true ? workload.slice(1) : undefined,
    textOption(options, "credentials"),
  ];
  return [playbook.file, ...named.filter((file) => file !== undefined).map((file) => resolve(folder, file))];
}

/** Throws `FlowError` NOT_FOUND when the document has no such step. */
function checkTarget(playbook: LocalPlaybook, target: string | undefined): string | undefined {
  const { steps } = playbook.program;
  if (target === undefined || steps.has(target)) return target;
  const near = nearest(target, steps.keys());
  const shown = [...steps.keys()].slice(0, STEPS_LISTED_MAX).join(", ");
  const more = steps.size > STEPS_LISTED_MAX ? ", …" : "";
  const hint = near === undefined ? `Its steps are: ${shown}${more}` : `Did you mean '${near}'?`;
  throw new FlowError("NOT_FOUND", `--target: the playbook has no step '${target}'. ${hint}`);
}

/** Names listed when no similar one is found. */
const STEPS_LISTED_MAX = 20;

async function runWatched(
  parts: RuntimeParts,
  playbook: LocalPlaybook,
  request: { input: JsonObject; target?: string },
  watch: Watch,
  { options, io }: CliInput,
): Promise<number> {
  const { runtime } = parts;
  const putInOrder = () => {
    watch.progress.stop();
    return watch.recorder?.close();
  };
  const cancelling = () => watch.progress.cancelling();
  // The second Ctrl-C leaves without coming back here: the cursor is to be shown and the log to be complete all the same.
  process.once("exit", putInOrder);
  io.signal.addEventListener("abort", cancelling, { once: true });
  try {
    await runtime.run(playbook, request, io.signal);
    const print = await prepareOutcome(watch.model, playbook, runtime.results, options, io);
    // Sub-playbooks that nobody waited for end before the process does.
    await runtime.close();
    const incomplete = putInOrder();
    const code = print();
    if (incomplete === undefined) return code;
    io.stderr.write(`flow: ${cleanText(incomplete.message)}\n`);
    return code === EXIT.ok ? EXIT.failed : code;
  } finally {
    io.signal.removeEventListener("abort", cancelling);
    process.off("exit", putInOrder);
    putInOrder();
  }
}
