import { availableParallelism } from "node:os";
import { inheritedEnvironment } from "../../platform/config/config.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { failed, type TaskFiles, type ToolResult } from "../../schema/words/outcome.ts";
import { abortedResult, answering } from "../contract/task-config.ts";
import type { Tool, ToolCall } from "../contract/tool.ts";
import { createTaskFolders } from "../files/task-folders.ts";
import { DEFAULT_LIMITS, inScratch, MISSING_FILE_HINT, noSandbox, type Sandbox } from "../sandbox/sandbox.ts";
import type { ScriptFiles } from "../scripts/file.ts";
import type { ScriptFetcher } from "../scripts/http.ts";
import type { ScriptPlaces } from "../scripts/script-source.ts";
import type { Interpreter } from "./interpreter.ts";
import { largeResult } from "./large-value.ts";
import type { PythonAnswer, PythonError, PythonRequest } from "./messages.ts";
import { PythonPool } from "./pool.ts";
import { pythonSource } from "./source.ts";

/** What {@link createPythonTool} takes. Everything has a default. */
export interface PythonToolOptions {
  /** The interpreter: a path, or a name that is looked up on PATH (`FLOW_PYTHON`). Default `python3`. */
  pythonPath?: string;
  /** Interpreters that stay started while nothing runs, once they were needed. Default 2. */
  warmCount?: number;
  /** Whether a fresh interpreter stands ready for the next trust domain. Default: no. */
  keepsSpare?: boolean;
  /** Tasks that run at the same time, one interpreter each. Default: one per core, at least 2. */
  maxCount?: number;
  /** Address space of one interpreter. Default 4 GiB: libraries such as numpy reserve far more than they use. */
  memoryLimitBytes?: number;
  /** Output of one task that reaches its log, and its `stdout`; the rest is dropped. Default 1 MiB. */
  maxOutputBytes?: number;
  /** Which files scripts may be read from. Default: those in the folder of the playbook and below. */
  scriptFiles?: ScriptFiles;
  /** How scripts of source type `http` are fetched; closed with the tool. Absent: they are refused. */
  scriptFetcher?: ScriptFetcher;
  /** Environment of this program, of which an interpreter sees a few names only. Default: the one it was started with. */
  env?: Readonly<Record<string, string | undefined>>;
  /** Where code runs, and what its relative paths start from, without a sandbox. Default: the working directory of this program. */
  workingDirectory?: string;
  /** What keeps code apart from this program. Default: nothing. */
  sandbox?: Sandbox;
}

/**
 * `python`: runs code in a warm interpreter (language document, section 8). An exception is an error of kind
 * `client_error` whose code is the exception's class, with the playbook's line.
 *
 * Every task gets fresh globals, and finds environment, working directory and output streams as they were at the start.
 * What a task does to an imported module stays until its interpreter is replaced. Threads and processes that outlive
 * their task are ended with the interpreter.
 */
export function createPythonTool(options: PythonToolOptions = {}): Tool {
  const sandbox = options.sandbox ?? noSandbox("none");
  const maxCount = options.maxCount ?? Math.max(2, availableParallelism());
  const pool = new PythonPool({
    pythonPath: options.pythonPath ?? "python3",
    sandbox,
    folders: createTaskFolders(sandbox),
    env: inScratch(pythonEnvironment(options.env ?? inheritedEnvironment()), sandbox),
    workingDirectory: sandbox.workFolder ?? options.workingDirectory ?? process.cwd(),
    warmCount: options.warmCount ?? 2,
    maxCount,
    keepsSpare: options.keepsSpare ?? false,
    memoryLimitBytes: options.memoryLimitBytes ?? DEFAULT_LIMITS.memoryBytes,
    maxOutputBytes: options.maxOutputBytes ?? 1024 ** 2,
  });
  const places: ScriptPlaces = { files: options.scriptFiles ?? "document", fetcher: options.scriptFetcher };
  return {
    run: (call) => answering(() => runTask(pool, places, call, sandbox)),
    async close() {
      await Promise.all([pool.close(), places.fetcher?.close()]);
    },
  };
}

async function runTask(pool: PythonPool, places: ScriptPlaces, call: ToolCall, sandbox: Sandbox): Promise<ToolResult> {
  const source = await pythonSource(call, places);
  if ("status" in source) return source;
  const request: PythonRequest = {
    ...source,
    input: call.input,
    executionId: call.executionId,
  };
  try {
    const answer = await pool.use(call.trustDomain, call.signal, (interpreter) => {
      // SIGKILL, since code in a loop, or waiting in C, would not notice anything milder.
      const stop = () => void interpreter.kill();
      call.signal.addEventListener("abort", stop, { once: true });
      const running = interpreter.run(request, call);
      return running
        .then(async (ended) => ({ ended, files: await filesOf(interpreter, call) }))
        .finally(() => call.signal.removeEventListener("abort", stop));
    });
    const result = resultOf(answer.ended, request.label, call, sandbox);
    return answer.files === undefined ? result : { ...result, files: answer.files };
  } catch (error) {
    if (call.signal.aborted) return abortedResult(call.signal, subject(call));
    if (error instanceof FlowError && error.code === "CANCELLED")
      return failed("cancelled", "CANCELLED", error.message);
    throw error;
  }
}

/** What the task has left. One that is stopped leaves nothing. */
async function filesOf(interpreter: Interpreter, { signal, log }: ToolCall): Promise<TaskFiles | undefined> {
  const files = signal.aborted ? undefined : await interpreter.takeFiles(log);
  if (!signal.aborted) return files;
  await files?.remove();
  return undefined;
}

function resultOf(answer: PythonAnswer, label: string, call: ToolCall, sandbox: Sandbox): ToolResult {
  switch (answer.type) {
    case "value":
      return { status: "ok", data: answer.value };
    case "large":
      return largeResult(answer.value);
    case "error":
      return exceptionResult(answer.error, label, call, sandbox);
    case "stopped":
      return abortedResult(call.signal, subject(call));
    case "lost":
      return lostResult(answer.code, answer.how, call);
  }
}

function subject(call: ToolCall): string {
  return `The python code of task "${call.task}"`;
}

/** What Python says about a file of the machine that is not in the sandbox. */
const MISSING_FILE = /^FileNotFoundError: |Read-only file system/;

function exceptionResult(error: PythonError, label: string, call: ToolCall, sandbox: Sandbox): ToolResult {
  for (const line of error.traceback.split("\n")) call.log(line);
  const place = error.line === null ? label : `${label}:${error.line}`;
  const inFunction = error.function === null || error.function === "<module>" ? "" : `, in ${error.function}`;
  const said = error.message === "" ? error.exception : `${error.exception}: ${error.message}`;
  const hint = sandbox.kind !== "none" && MISSING_FILE.test(said) ? `. ${MISSING_FILE_HINT}` : "";
  const result = failed("client_error", error.code, `${said} (${place}${inFunction})${hint}`, {
    retryable: error.retryable,
    details: {
      exception: error.exception,
      file: label,
      line: error.line,
      function: error.function,
      traceback: error.traceback,
    },
  });
  return { ...result, py: { exception: error.exception, traceback: error.traceback } };
}

/** The interpreter ended while the code ran: `os._exit`, a crash in a C library, or a kill from outside. */
function lostResult(code: string, how: string, call: ToolCall): ToolResult {
  const message =
    `${subject(call)} (${call.source.file}) took its interpreter down: the process ${how}. ` +
    "The task's log has the last that it said.";
  return { ...failed("client_error", code, message), py: { exception: code, traceback: "" } };
}

/**
 * What an interpreter sees of our environment: how to find programs, modules and certificates, and how to speak. Nothing
 * else, because settings and secrets of the service stand there too.
 */
const PASSED_ON = [
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "LANG",
  "LC_ALL",
  "LC_CTYPE",
  "TZ",
  "TMPDIR",
  "PYTHONPATH",
  "PYTHONHOME",
  "VIRTUAL_ENV",
  "LD_LIBRARY_PATH",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
] as const;

/** The whole environment of an interpreter, made from ours. */
export function pythonEnvironment(ours: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const env: Record<string, string> = {
    PYTHONUNBUFFERED: "1",
    PYTHONIOENCODING: "utf-8",
    PYTHONUTF8: "1",
    PYTHONDONTWRITEBYTECODE: "1",
  };
  for (const name of PASSED_ON) {
    const value = ours[name];
    if (value !== undefined) env[name] = value;
  }
  return env;
}
