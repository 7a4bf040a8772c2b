import { createFileCredentials } from "../../adapters/file-credentials.ts";
import { unknownInputs } from "../../engine/program/unknown-inputs.ts";
import type { ExecutionState } from "../../engine/state/state.ts";
import { childCalls } from "../../language/load/child-calls.ts";
import { folderOf, type LocalPlaybook, shown } from "../../local/catalog.ts";
import { createLocalRuntime, type LocalRuntime } from "../../local/runtime.ts";
import { type Config, isGiven } from "../../platform/config/config.ts";
import { proxyRules } from "../../platform/http/proxy.ts";
import type { SecretSource } from "../../ports/secret-source.ts";
import { openSecretSource } from "../../roles/server/secret-source.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import { type JsonObject, setOwn } from "../../schema/words/json.ts";
import { createToolRegistry, type ToolRegistry } from "../../tools/registry.ts";
import { type CliInput, type CliIo, textOption } from "../command-line/command.ts";
import { credentialsFile, filesRead, labelsOf, readInputs } from "../documents/inputs.ts";
import { checkTarget, loadNamed } from "../documents/named-playbook.ts";
import { openProgress } from "../progress/open-progress.ts";
import { cleanText } from "../terminal/text.ts";
import { createRecorder } from "../watch/record.ts";
import { prepareOutcome, writeWarnings } from "../watch/summary.ts";
import { createWatch, runWatched, type Watch } from "../watch/watched-run.ts";

/**
 * Runs one playbook in this process, from its document to its outcome. Returns the exit code; throws `FlowError` if the run
 * cannot start.
 */
export async function runLocally(input: CliInput, config: Config): Promise<number> {
  const { options, io } = input;
  const inputs = await readInputs(options, io.folder);
  if (labelsOf(options) !== undefined) {
    io.stderr.write("note: --label has no use here: it is for finding the runs of a server\n");
  }
  const watch = createWatch();
  const { runtime, tools, secretSource } = buildRuntime(
    config,
    await credentialsFile(config, options, io.folder),
    watch,
  );
  try {
    const playbook = await loadNamed(runtime, input.arguments[0] ?? "", io);
    const target = checkTarget(playbook, textOption(options, "target"));
    writeWarnings(playbook.warnings, io);
    if (target === undefined) await checkChildren(runtime, playbook, io);
    for (const warning of unknownInputs(playbook.program, inputs))
      io.stderr.write(`${cleanText(`warning: ${warning}`)}\n`);
    const record = textOption(options, "record");
    const read = filesRead(playbook.file, options, io.folder);
    if (record !== undefined) watch.recorder = createRecorder(record, io.folder, read);
    watch.progress = openProgress(watch.model, options, io);
    return await runWatched(watch, io, async () => {
      await runtime.run(playbook, { input: inputs, ...defined({ target }) }, io.signal);
      const print = await prepareOutcome(watch.model, { playbook, results: runtime.results }, options, io);
      // Waits for sub-playbooks that no step waited for.
      await runtime.close();
      return print;
    });
  } finally {
    await runtime.close();
    await tools()?.close();
    await secretSource.close();
  }
}

/** Throws if the run is certain to call a playbook that does not exist. */
async function checkChildren(runtime: LocalRuntime, { program, file }: LocalPlaybook, io: CliIo): Promise<void> {
  for (const { path, step, isCertain } of childCalls(program.playbook)) {
    if (!isCertain || path === program.playbook.path) continue;
    try {
      await runtime.load(path, folderOf(file), io.signal);
    } catch (error) {
      if (!(error instanceof FlowError) || error.code !== "NOT_FOUND") throw error;
      throw new FlowError(
        "NOT_FOUND",
        `${shown(file)} was not run: its step '${step}' calls what is not there. ${error.message}`,
      );
    }
  }
}

interface RuntimeParts {
  runtime: LocalRuntime;
  tools(): ToolRegistry | undefined;
  secretSource: SecretSource;
}

function buildRuntime(config: Config, credentials: string | undefined, watch: Watch): RuntimeParts {
  let tools: ToolRegistry | undefined;
  const secretSource = openSecretSource(config, config.httpAllowPrivate);
  const runtime = createLocalRuntime({
    tools: (store) => {
      tools = createToolRegistry({
        allowPrivate: config.httpAllowPrivate,
        proxyOf: proxyRules(config),
        store,
        ...(config.workerTools !== "all" && { kinds: config.workerTools }),
        ...(config.python !== undefined && { python: { pythonPath: config.python } }),
        duckdb: { files: config.duckdbFiles, memory: config.duckdbMemory },
      });
      return tools;
    },
    credentials: createFileCredentials(credentials, config.environment),
    secretSource,
    ...(isGiven(config, "mcpTokenHosts") && { mcpTokenHosts: config.mcpTokenHosts }),
    env: allowedEnvironment(config),
    capacity: config.localCapacity,
    observe(state: ExecutionState, events: readonly FlowEvent[]) {
      watch.recorder?.observe(state, events);
      watch.progress.observe(watch.model.observe(state, events), events);
    },
    log: (line) => watch.progress.log(line),
  });
  return { runtime, tools: () => tools, secretSource };
}

function allowedEnvironment(config: Config): JsonObject {
  const allowed: JsonObject = {};
  for (const name of config.templateEnv) {
    const value = config.environment[name];
    if (value !== undefined) setOwn(allowed, name, value);
  }
  return allowed;
}
