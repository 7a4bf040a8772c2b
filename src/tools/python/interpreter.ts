import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import type { Duplex, Readable } from "node:stream";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { TaskFiles } from "../../schema/words/outcome.ts";
import { FILES_VARIABLE, type TaskFolders } from "../files/task-folders.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { BOOTSTRAP, createFrameReader, EXIT_TOO_OLD, frame, HARNESS, PYTHON_MINIMUM } from "./harness.ts";
import {
  answerOf,
  type Message,
  type PythonAnswer,
  type PythonHooks,
  type PythonRequest,
  parseMessage,
} from "./messages.ts";
import { createOutputReader } from "./output.ts";

/** Most JSON of one result; what is larger belongs in a file or a store. The harness refuses it before sending. */
const RESULT_BYTES_MAX = 64 * 1024 * 1024;
const FRAME_BYTES_MAX = RESULT_BYTES_MAX + 1024 * 1024;
/** The harness stops writing a little later than this process stops reading, so that this process always reports it. */
const OUTPUT_SLACK_BYTES = 64 * 1024;
/** An interpreter starts in 40 to 150 ms; if it is not ready after this, it never will be. */
const START_TIMEOUT_MS = 30_000;
/** How long to wait for the last output of a process that has ended: a child that left the group may hold the pipe. */
const LAST_OUTPUT_MS = 1_000;
/** Output kept from before `ready`, to explain a failed start. */
const STARTUP_TEXT_CHARS = 2_000;

/** How an interpreter is started. */
export interface InterpreterOptions {
  /** Name looked up on PATH, or path. */
  pythonPath: string;
  /** The whole environment of the interpreter. */
  env: Readonly<Record<string, string>>;
  /** Where code runs: a folder of this machine, or of the sandbox. */
  workingDirectory: string;
  sandbox: Sandbox;
  folders: TaskFolders;
  memoryLimitBytes: number;
  /** Most bytes of output per task that are given out as lines. */
  maxOutputBytes: number;
}

interface Current {
  hooks: PythonHooks;
  answer: PythonAnswer | undefined;
  settle(answer: PythonAnswer): void;
}

/** A Python process that runs one task at a time. It holds a process: {@link kill} ends it and what it started. */
export class Interpreter {
  /** Path of the interpreter itself, if the executable is a wrapper (pyenv: 100 ms less per start); or empty. */
  executable = "";
  /** Tasks run so far. */
  tasksRun = 0;
  /** True when it has ended, or should not run another task. */
  spent = false;

  private readonly child: ChildProcess;
  /** For the files of the task that runs, empty between tasks. */
  private readonly files: string;
  private readonly folders: TaskFolders;
  private readonly isSandboxed: boolean;
  private readonly protocol: Duplex;
  private readonly output: Readable;
  private readonly ended: Promise<void>;
  private current: Current | undefined;
  private isReady = false;
  private marked = false;
  private stopped = false;
  private disturbed = false;
  private startupText = "";
  private onReady: (() => void) | undefined;

  private constructor(options: InterpreterOptions) {
    const { pythonPath, workingDirectory, sandbox, folders } = options;
    this.isSandboxed = sandbox.kind !== "none";
    this.folders = folders;
    this.files = folders.make();
    const env = { ...options.env, [FILES_VARIABLE]: folders.inside(this.files) };
    const args = ["-c", BOOTSTRAP];
    const program = sandbox.wrap({ file: pythonPath, args, env, cwd: workingDirectory, files: this.files });
    this.child = spawn(program.file, program.args, {
      stdio: ["ignore", "pipe", "pipe", "pipe"],
      env: program.env,
      cwd: program.cwd,
      // A process group of its own: one kill also reaches child processes of the code, and Ctrl-C reaches only this program.
      detached: true,
    });
    this.output = this.child.stdout!;
    this.protocol = this.child.stdio[3] as Duplex;
    const mark = Buffer.from(`\0${randomBytes(12).toString("hex")}\n`);
    this.readOutput(mark, options.maxOutputBytes);
    this.readProtocol();
    this.ended = this.watchEnd();
    this.protocol.write(frame(HARNESS));
    const settings = {
      memoryLimitBytes: options.memoryLimitBytes,
      outputBytesMax: options.maxOutputBytes + OUTPUT_SLACK_BYTES,
      resultBytesMax: RESULT_BYTES_MAX,
      mark: mark.toString("latin1"),
      // Empty at the start of every task. Elsewhere it is a folder of people, which is not for us to empty.
      scratch: sandbox.scratch ?? null,
    };
    this.protocol.write(frame(JSON.stringify(settings)));
  }

  /** Starts an interpreter. Throws FlowError `INVALID_SETTING` if it is missing or cannot be used. */
  static async start(options: InterpreterOptions): Promise<Interpreter> {
    const interpreter = new Interpreter(options);
    const { child } = interpreter;
    let timer: NodeJS.Timeout | undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        interpreter.onReady = resolve;
        child.once("error", (error) => reject(cannotStart(options, error)));
        child.once("exit", (code) => void interpreter.ended.then(() => reject(interpreter.diedEarly(options, code))));
        const late = `it was not ready after ${START_TIMEOUT_MS / 1000} s`;
        timer = setTimeout(() => reject(unusable(options.pythonPath, late)), START_TIMEOUT_MS);
      });
      return interpreter;
    } catch (error) {
      void interpreter.kill();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Runs one task. Never rejects; after {@link kill} it answers `stopped`. */
  run(request: PythonRequest, hooks: PythonHooks): Promise<PythonAnswer> {
    const bytes = frame(JSON.stringify(request));
    this.tasksRun++;
    return new Promise((settle) => {
      this.current = { hooks, settle, answer: undefined };
      this.marked = false;
      this.protocol.write(bytes);
    });
  }

  /** What the task that has just ended has left in its folder; undefined: nothing. */
  async takeFiles(log: (line: string) => void): Promise<TaskFiles | undefined> {
    return await this.folders.take(this.files, log, false);
  }

  /** Ends the process and every process of its group. Resolves when it is gone, with the files that were not taken. */
  async kill(): Promise<void> {
    this.spent = true;
    if (this.child.exitCode === null && this.child.signalCode === null) {
      this.stopped = true;
      // An idle interpreter does not keep the program running, but a caller waiting for its end must see the end.
      this.ref();
      killGroup(this.child.pid);
    }
    await this.ended;
    await this.folders.remove(this.files);
  }

  /** Lets the program end although this interpreter is there. */
  unref(): void {
    for (const handle of [this.child, this.output, this.protocol]) (handle as { unref(): void }).unref();
  }

  /** Keeps the program running while a task runs. */
  ref(): void {
    for (const handle of [this.child, this.output, this.protocol]) (handle as { ref(): void }).ref();
  }

  private readOutput(mark: Buffer, maxBytes: number): void {
    const lines = createOutputReader({
      mark,
      maxBytes,
      line: (text) => (this.current === undefined ? this.keepStartup(text) : this.current.hooks.log(text)),
      part: () => {
        this.marked = true;
        this.settleWhenComplete();
      },
    });
    this.output.on("data", (chunk: Buffer) => lines.push(chunk));
    this.output.on("end", () => lines.end());
    // Standard error is the same pipe as soon as the harness runs; before, it says why it does not.
    this.child.stderr!.on("data", (chunk: Buffer) => this.keepStartup(chunk.toString("utf8")));
  }

  private keepStartup(text: string): void {
    this.startupText = `${this.startupText}${text}\n`.slice(-STARTUP_TEXT_CHARS);
  }

  private readProtocol(): void {
    const frames = createFrameReader(FRAME_BYTES_MAX, (bytes) => this.onMessage(parseMessage(bytes)));
    this.protocol.on("data", (piece: Buffer<ArrayBuffer>) => {
      try {
        frames.push(piece);
      } catch {
        // Only code that writes to our descriptor can cause this. Nothing that it says can be believed any more.
        this.disturbed = true;
        killGroup(this.child.pid);
      }
    });
    // A process that has ended: its end is reported by `exit`, with the reason.
    this.protocol.on("error", () => {});
  }

  private onMessage(message: Message): void {
    switch (message.type) {
      case "ready":
        this.isReady = true;
        // Empty if Python does not know, because PATH is unset.
        this.executable = message.executable;
        this.settleWhenComplete();
        return;
      case "names":
        this.protocol.write(frame(this.namesText()));
        return;
      case "done":
        if (message.retire) this.spent = true;
        if (this.current === undefined) return;
        this.current.answer = answerOf(message);
        this.settleWhenComplete();
        return;
    }
  }

  /** The names as JSON; what keeps them from being built is raised inside the code that asked. */
  private namesText(): string {
    try {
      return JSON.stringify({ names: this.current?.hooks.names() ?? {} });
    } catch (error) {
      return JSON.stringify({ error: messageOf(error) });
    }
  }

  /** The answer and the output come by two ways. Both must be in before the next task may begin. */
  private settleWhenComplete(): void {
    if (!this.marked) return;
    const { current } = this;
    if (current === undefined) {
      if (this.isReady) this.onReady?.();
      return;
    }
    if (current.answer === undefined) return;
    this.current = undefined;
    current.settle(current.answer);
  }

  private watchEnd(): Promise<void> {
    return new Promise((resolve) => {
      this.child.once("error", () => resolve());
      this.child.once("exit", (status, signal) => {
        const { exitCode, exitSignal } = this.isSandboxed
          ? innerEnd(status, signal)
          : { exitCode: status, exitSignal: signal };
        this.spent = true;
        killGroup(this.child.pid);
        const finish = () => {
          clearTimeout(timer);
          const { current } = this;
          this.current = undefined;
          current?.settle(current.answer ?? this.answerAtEnd(exitCode, exitSignal));
          for (const stream of [this.protocol, this.output, this.child.stderr!]) stream.destroy();
          resolve();
        };
        // If it was stopped, its last output does not matter; otherwise it says why the interpreter ended.
        const timer = setTimeout(finish, this.stopped ? 0 : LAST_OUTPUT_MS);
        this.child.once("close", finish);
      });
    });
  }

  private answerAtEnd(exitCode: number | null, exitSignal: NodeJS.Signals | null): PythonAnswer {
    if (this.stopped) return { type: "stopped" };
    if (this.disturbed) {
      return { type: "lost", code: "INTERPRETER_LOST", how: "was ended, because the code wrote to file descriptor 3" };
    }
    if (exitSignal === "SIGKILL") {
      return { type: "lost", code: exitSignal, how: "was ended by SIGKILL, most likely because memory ran out" };
    }
    if (exitSignal === "SIGXCPU") {
      return {
        type: "lost",
        code: exitSignal,
        how: "was ended by SIGXCPU, because it used more CPU time than a task may",
      };
    }
    if (exitSignal !== null) return { type: "lost", code: exitSignal, how: `was ended by ${exitSignal}` };
    const code = exitCode === 0 ? "INTERPRETER_LOST" : `EXIT_${exitCode}`;
    return { type: "lost", code, how: `exited with status ${exitCode}` };
  }

  private diedEarly(options: InterpreterOptions, exitCode: number | null): FlowError {
    const output = this.startupText.trim();
    if (exitCode === EXIT_TOO_OLD)
      return unusable(options.pythonPath, `it is ${output}, and ${PYTHON_MINIMUM} is needed`);
    return unusable(options.pythonPath, `it ended at once${output === "" ? "" : `, saying: ${output}`}`);
  }
}

/** What starts a program in a sandbox ends with 128 + n for a signal n that ended the program. */
function innerEnd(
  status: number | null,
  signal: NodeJS.Signals | null,
): {
  exitCode: number | null;
  exitSignal: NodeJS.Signals | null;
} {
  const inner = Object.entries(constants.signals).find(([, number]) => status === 128 + number)?.[0];
  return inner === undefined
    ? { exitCode: status, exitSignal: signal }
    : { exitCode: null, exitSignal: inner as NodeJS.Signals };
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // ESRCH: everything in the group has ended.
  }
}

function cannotStart(options: InterpreterOptions, error: NodeJS.ErrnoException): FlowError {
  const { pythonPath, workingDirectory } = options;
  // Node gives the same ENOENT for both.
  if (!existsSync(workingDirectory)) {
    const message = `${cannotUse(pythonPath)}: its working directory ${workingDirectory} does not exist. Create it.`;
    return new FlowError("INVALID_SETTING", message, { cause: error });
  }
  const place = pythonPath.includes("/") ? "" : " on PATH";
  if (error.code === "ENOENT") return unusable(pythonPath, `there is no such program${place}`);
  if (error.code === "EACCES") return unusable(pythonPath, "it may not be executed");
  return new FlowError("INTERNAL", `${cannotUse(pythonPath)}: ${error.message}.`, { cause: error });
}

function unusable(pythonPath: string, why: string): FlowError {
  return new FlowError("INVALID_SETTING", `${cannotUse(pythonPath)}: ${why}. ${WHAT_TO_DO}`);
}

function cannotUse(pythonPath: string): string {
  return `Cannot run python code with the interpreter "${pythonPath}"`;
}

const WHAT_TO_DO = `Install Python ${PYTHON_MINIMUM} or newer, or set FLOW_PYTHON to the path of one.`;
