import { createFileCredentials } from "../../adapters/file-credentials.ts";
import type { Program } from "../../engine/program/program.ts";
import { unknownInputs } from "../../engine/program/unknown-inputs.ts";
import type { ExecutionState } from "../../engine/state/state.ts";
import { childCalls } from "../../language/load/child-calls.ts";
import type { AnswerApproval } from "../../local/approvals.ts";
import { folderOf, type LocalPlaybook, shown } from "../../local/catalog.ts";
import { createLocalRuntime, type LocalRuntime } from "../../local/runtime.ts";
import type { LocalSignal } from "../../local/waits.ts";
import { type Config, isGiven } from "../../platform/config/config.ts";
import { proxyRules } from "../../platform/http/proxy.ts";
import type { SecretSource } from "../../ports/secret-source.ts";
import { openSecretSource } from "../../roles/server/secret-source.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import { type JsonObject, setOwn } from "../../schema/words/json.ts";
import { readRecordedRun } from "../../testing/recorded-run.ts";
import { type Reuse, reuseBefore } from "../../testing/reuse.ts";
import { createToolRegistry, type ToolRegistry } from "../../tools/registry.ts";
import { type CliInput, type CliIo, textOption } from "../command-line/command.ts";
import { credentialsFile, filesRead, labelsOf, readInputs, signalsOf } from "../documents/inputs.ts";
import { checkTarget, loadNamed } from "../documents/named-playbook.ts";
import { openProgress } from "../progress/open-progress.ts";
import { cleanText } from "../terminal/text.ts";
import { createRecorder } from "../watch/record.ts";
import { prepareOutcome, writeWarnings } from "../watch/summary.ts";
import { createWatch, runWatched, type Watch } from "../watch/watched-run.ts";
import { keepArtifacts } from "./local-artifacts.ts";

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
  const signals = signalsOf(options).map((signal) => ({ signal, afterMs: 0 }));
  const answer = await answersOf(input, watch);
  const parts = buildRuntime(config, await credentialsFile(config, options, io.folder), watch, { signals, answer, io });
  const { runtime, tools, secretSource } = parts;
  try {
    const playbook = await withReuse(await loadNamed(runtime, input.arguments[0] ?? "", io), input, parts);
    const target = checkTarget(playbook, textOption(options, "target"));
    writeWarnings(playbook.warnings, io);
    if (playbook.program.playbook.hasTriggers === true)
      io.stderr.write("note: its triggers are passed over here: they fire on a server\n");
    if (tellsPeople(playbook.program))
      io.stderr.write("note: `notify` of its approvals starts nothing here: a server starts that playbook\n");
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

function tellsPeople({ steps }: Program): boolean {
  return [...steps.values()].some(({ tasks }) => tasks.some(({ waitNotify }) => waitNotify !== undefined));
}

/** Who answers approvals. Most runs have none. Throws `FlowError` USAGE. */
async function answersOf(input: CliInput, watch: Watch): Promise<AnswerApproval> {
  const { options, io } = input;
  const quietDown = () => {
    watch.progress.stop();
    // A tree would draw over the question.
    watch.progress = openProgress(watch.model, { ...options, quiet: true }, io);
  };
  const open = async () => (await import("./approvals.ts")).approvalAnswers(input, quietDown);
  let answers = options["answer"] === undefined ? undefined : await open();
  return async (question, signal) => {
    answers ??= await open();
    return await answers(question, signal);
  };
}

/** With `--from` and `--using` the steps before that one answer from the record. */
async function withReuse(
  playbook: LocalPlaybook,
  { options, io }: CliInput,
  parts: RuntimeParts,
): Promise<LocalPlaybook> {
  const [from, using] = [textOption(options, "from"), textOption(options, "using")];
  if (from === undefined && using === undefined) return playbook;
  if (from === undefined || using === undefined) {
    throw new FlowError(
      "USAGE",
      "--from STEP and --using RECORD belong together: the record has what came before the step",
    );
  }
  const reuse = reuseBefore(playbook.program, from, await readRecordedRun(using, io.folder));
  parts.reuse(reuse);
  io.stderr.write(`${cleanText(`reused from ${using}: ${reuse.steps.join(", ") || "nothing"}`)}\n`);
  return { ...playbook, program: reuse.program };
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
  /** From here on tools answer from a record where it says so. */
  reuse(reuse: Reuse): void;
}

function buildRuntime(
  config: Config,
  credentials: string | undefined,
  watch: Watch,
  { io, ...told }: { signals: readonly LocalSignal[]; answer: AnswerApproval; io: CliIo },
): RuntimeParts {
  let tools: ToolRegistry | undefined;
  let reused: Reuse | undefined;
  const secretSource = openSecretSource(config, config.httpAllowPrivate);
  let keepFile: ReturnType<typeof keepArtifacts> | undefined;
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
      const real = tools;
      return { get: (kind) => (reused === undefined ? real : reused.tools(real)).get(kind) };
    },
    credentials: createFileCredentials(credentials, config.environment),
    secretSource,
    ...(isGiven(config, "mcpTokenHosts") && { mcpTokenHosts: config.mcpTokenHosts }),
    env: allowedEnvironment(config),
    capacity: config.localCapacity,
    ...told,
    observe(state: ExecutionState, events: readonly FlowEvent[]) {
      watch.recorder?.observe(state, events);
      watch.progress.observe(watch.model.observe(state, events), events);
    },
    saved(payload) {
      if (payload.file === undefined) {
        watch.recorder?.payload(payload);
        return;
      }
      // Most runs store none.
      keepFile ??= keepArtifacts(io);
      keepFile(payload);
    },
    log: (line) => watch.progress.log(line),
  });
  const reuse = (chosen: Reuse) => {
    reused = chosen;
  };
  return { runtime, tools: () => tools, secretSource, reuse };
}

function allowedEnvironment(config: Config): JsonObject {
  const allowed: JsonObject = {};
  for (const name of config.templateEnv) {
    const value = config.environment[name];
    if (value !== undefined) setOwn(allowed, name, value);
  }
  return allowed;
}
