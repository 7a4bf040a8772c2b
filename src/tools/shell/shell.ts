import { resolve } from "node:path";
import * as v from "valibot";
import { inheritedEnvironment } from "../../platform/config/config.ts";
import { messageOf } from "../../schema/words/errors.ts";
import type { Json, JsonObject } from "../../schema/words/json.ts";
import { failed, type ToolResult } from "../../schema/words/outcome.ts";
import {
  abortedResult,
  answering,
  configurationError,
  MapOfJson,
  parseConfig,
  TextLike,
} from "../contract/task-config.ts";
import type { Tool, ToolCall } from "../contract/tool.ts";
import { createTaskFolders, FILES_VARIABLE, type TaskFolders } from "../files/task-folders.ts";
import { inScratch, MISSING_FILE_HINT, noSandbox, type Sandbox } from "../sandbox/sandbox.ts";
import { NO_FOLDER } from "../sandbox/start-script.ts";
import { captureOutput, type OutputCapture, runShellCommand, type ShellExit } from "./process.ts";

/** What {@link createShellTool} takes. */
export interface ShellOptions {
  /**
   * The environment of this process, default the one it was started with; commands get PATH, HOME, LANG, LC_ALL, TZ and
   * TMPDIR of it and nothing else.
   */
  env?: Readonly<Record<string, string | undefined>>;
  /** Where commands run, and what a relative `cwd` is relative to. Default: this process's folder. */
  workFolder?: string;
  /** What keeps commands apart from this program. Default: nothing. */
  sandbox?: Sandbox;
  /** Bytes of each output stream that the result keeps. Default 10 MiB. */
  outputBytesMax?: number;
  /** Time between TERM and KILL of a task that is stopped, in milliseconds. Default 2,000. */
  killGraceMs?: number;
}

/**
 * `shell`: each command with `/bin/sh -c`, stopping at the first that fails (language document, section 8). Result
 * `{status, data: {returncode, stdout, stderr, commands}, text, exit_code}`; `text` is stdout without the line break at
 * its end, `commands` has `{command, returncode}` of each that ran, and `data.truncated` says that output was cut off. A
 * text of several lines is one script.
 */
export function createShellTool(options: ShellOptions = {}): Tool {
  const folders = createTaskFolders(options.sandbox ?? noSandbox("none"));
  return {
    defaultTimeoutMs: 600_000,
    run: (call) => answering(() => withFiles(readShellTask(call, options), call, options, folders)),
  };
}

/** The commands, with a folder for the files of all of them. A task that is stopped leaves none. */
async function withFiles(
  task: ShellTask,
  call: ToolCall,
  options: ShellOptions,
  folders: TaskFolders,
): Promise<ToolResult> {
  const folder = folders.make();
  const env = { ...task.env, [FILES_VARIABLE]: folders.inside(folder) };
  let isKept = false;
  try {
    const result = await runCommands({ ...task, env, folder }, call, options);
    if (call.signal.aborted) return result;
    isKept = true;
    const files = await folders.take(folder, call.log, true);
    return files === undefined ? result : { ...result, files };
  } finally {
    if (!isKept) await folders.remove(folder);
  }
}

async function runCommands(
  task: ShellTask & { folder: string },
  call: ToolCall,
  options: ShellOptions,
): Promise<ToolResult> {
  const bytesMax = options.outputBytesMax ?? 10 * 1024 * 1024;
  const stdout = captureOutput(bytesMax, (line) => call.log(line));
  const stderr = captureOutput(bytesMax, (line) => call.log(line));
  const ran: JsonObject[] = [];
  let exit: ShellExit = { returncode: 0, signal: null };
  for (const command of task.commands) {
    if (call.signal.aborted) break;
    try {
      exit = await runShellCommand({
        command,
        cwd: task.cwd,
        env: task.env,
        sandbox: task.sandbox,
        files: task.folder,
        signal: call.signal,
        killGraceMs: options.killGraceMs ?? 2000,
        stdout,
        stderr,
      });
    } catch (error) {
      return startFailure(error, command, task.cwd);
    }
    ran.push({ command, returncode: exit.returncode });
    if (exit.returncode !== 0) break;
  }
  const data = resultOf(exit, stdout, stderr, ran);
  if (call.signal.aborted) return { ...abortedResult(call.signal, `The command ${shown(task.commands[0]!)}`), data };
  if (exit.returncode === 0) return { status: "ok", data };
  const isSandboxed = task.sandbox.kind !== "none";
  if (isSandboxed && exit.returncode === 126 && stderr.text().trimEnd().endsWith(NO_FOLDER)) {
    return startFailure({ code: "ENOENT" }, String(ran.at(-1)?.["command"]), task.cwd, MISSING_FILE_HINT);
  }
  const hint = isSandboxed && MISSING_FILE.test(stderr.text()) ? MISSING_FILE_HINT : "";
  const error = failed("client_error", `EXIT_${exit.returncode}`, failureMessage(ran, exit, stderr, hint));
  return { ...error, data };
}

function resultOf(exit: ShellExit, stdout: OutputCapture, stderr: OutputCapture, commands: JsonObject[]): JsonObject {
  const out = stdout.text();
  const data: JsonObject = { returncode: exit.returncode, stdout: out, stderr: stderr.text(), commands };
  if (stdout.truncated() || stderr.truncated()) data["truncated"] = true;
  return {
    status: exit.returncode === 0 ? "ok" : "error",
    data,
    text: out.replace(/\r?\n$/, ""),
    exit_code: exit.returncode,
  };
}

/** What programs say about a file of the machine that is not in the sandbox. */
const MISSING_FILE = /No such file or directory|Read-only file system|: not found/;

/** Says which command, how it ended, the last lines that it wrote to stderr, and what to do if there is a `hint`. */
function failureMessage(ran: readonly JsonObject[], exit: ShellExit, stderr: OutputCapture, hint: string): string {
  const which = ran.length > 1 ? `Command ${ran.length}, ` : "The command ";
  const how = exit.signal === null ? `exited with ${exit.returncode}` : `was ended by ${exit.signal}`;
  const lines = stderr.text().trimEnd().split("\n").slice(-5).join("\n").slice(-1000);
  const said = lines === "" ? "." : `: ${lines}`;
  return `${which}${shown(String(ran.at(-1)?.["command"]))}, ${how}${said}${hint === "" ? "" : `\n${hint}`}`;
}

function startFailure(error: unknown, command: string, cwd: string, hint?: string): ToolResult {
  const code = (error as NodeJS.ErrnoException).code ?? "SPAWN_FAILED";
  const reasons: Record<string, string> = {
    ENOENT: `the folder ${cwd} (cwd) does not exist, or there is no /bin/sh`,
    ENOTDIR: `${cwd} (cwd) is not a folder`,
    EACCES: `the folder ${cwd} (cwd) may not be entered`,
    E2BIG: "command and environment are longer than the system allows (128 KiB a command); put the script into a file",
  };
  const reason = reasons[code] ?? messageOf(error);
  const message = `The command ${shown(command)} could not be started: ${reason}${hint === undefined ? "" : `. ${hint}`}.`;
  return failed("configuration", code, message);
}

/** First line, at most 80 characters. */
function shown(command: string): string {
  const line = command.trim().split("\n", 1)[0]!;
  return `"${line.length > 80 ? `${line.slice(0, 80)}…` : line}"`;
}

interface ShellTask {
  commands: string[];
  sandbox: Sandbox;
  cwd: string;
  env: Record<string, string>;
}

const Commands = v.union([TextLike, v.array(TextLike)], "expects a command or a list of commands");

const ShellConfig = v.object({
  cmds: v.optional(Commands),
  cmd: v.optional(Commands),
  command: v.optional(Commands),
  cwd: v.optional(TextLike),
  env: v.optional(MapOfJson),
});

function readShellTask(call: ToolCall, options: ShellOptions): ShellTask {
  const config = parseConfig("shell", ShellConfig, call.config);
  const given = config.cmds ?? config.cmd ?? config.command ?? [];
  const commands = typeof given === "string" ? [given] : given;
  if (commands.length === 0) {
    throw configurationError('The shell task has no command: give it as "cmds" (text, or a list of texts).');
  }
  if (commands.some((command) => command.includes("\0"))) {
    throw configurationError("The shell task's command has a NUL character, which no command can carry.");
  }
  const sandbox = options.sandbox ?? noSandbox("none");
  const base = inScratch(baseEnvironment(options.env ?? inheritedEnvironment()), sandbox);
  return {
    commands,
    sandbox,
    cwd: resolve(sandbox.workFolder ?? options.workFolder ?? process.cwd(), config.cwd ?? "."),
    env: { ...base, ...taskEnvironment(config.env ?? {}) },
  };
}

/** What commands need to work at all. Everything else of our environment may be a secret. */
const INHERITED = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"] as const;

function baseEnvironment(environment: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const base: Record<string, string> = { PATH: "/usr/local/bin:/usr/bin:/bin" };
  for (const name of INHERITED) {
    const value = environment[name];
    if (value !== undefined) base[name] = value;
  }
  return base;
}

function taskEnvironment(env: JsonObject): Record<string, string> {
  const entries = Object.entries(env).filter(([, value]) => value !== null);
  for (const [name, value] of entries) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || textValue(value).includes("\0")) {
      throw configurationError(`The shell task's env has "${name}", which cannot be an environment variable.`);
    }
  }
  return Object.fromEntries(entries.map(([name, value]) => [name, textValue(value)]));
}

/** Maps and lists as JSON, so that a script can parse them. */
function textValue(value: Json): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
