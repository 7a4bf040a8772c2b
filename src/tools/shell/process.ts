import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import { StringDecoder } from "node:string_decoder";
import type { Program, Sandbox } from "../sandbox/sandbox.ts";

/** How one command is run. */
export interface ShellCommand {
  command: string;
  cwd: string;
  env: Record<string, string>;
  sandbox: Sandbox;
  /** Folder of the machine for the files of its task. */
  files: string;
  signal: AbortSignal;
  /** Time between TERM and KILL when the signal aborts, in milliseconds. */
  killGraceMs: number;
  stdout: OutputCapture;
  stderr: OutputCapture;
}

/** What became of it. 128 + n for a command that signal n ended, as shells have it. */
export interface ShellExit {
  returncode: number;
  signal: NodeJS.Signals | null;
}

/** Once a command is over, its output is read for so long at most: a process that left the group may hold the pipe. */
const DRAIN_MS = 1000;

/**
 * Runs one command with `/bin/sh -c` in its own process group. When the command ends, or the signal aborts, the whole group is
 * killed: no child process outlives the command. Throws the error of `spawn` if the process cannot start.
 */
export function runShellCommand(options: ShellCommand): Promise<ShellExit> {
  return new Promise((resolve, reject) => {
    const program = options.sandbox.wrap(shellProgram(options));
    const child = spawn(program.file, program.args, {
      cwd: program.cwd,
      env: program.env,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const group = child.pid;
    if (group !== undefined) watchGroup(group);
    let killTimer: NodeJS.Timeout | undefined;
    let drainTimer: NodeJS.Timeout | undefined;
    const onAbort = () => {
      // What makes the sandbox would end at once, and with it everything within.
      if (options.sandbox.kind === "none") signalGroup(child.pid, "SIGTERM");
      else for (const pid of membersOf(child.pid)) send(pid, "SIGTERM");
      killTimer = setTimeout(() => signalGroup(child.pid, "SIGKILL"), options.killGraceMs);
    };
    child.stdout.on("data", (chunk: Buffer) => options.stdout.write(chunk));
    child.stderr.on("data", (chunk: Buffer) => options.stderr.write(chunk));
    child.once("error", (error) => {
      options.signal.removeEventListener("abort", onAbort);
      reject(error);
    });
    child.once("exit", () => {
      options.signal.removeEventListener("abort", onAbort);
      clearTimeout(killTimer);
      // In the same turn in which the shell was reaped, so that its id cannot belong to another group yet.
      signalGroup(child.pid, "SIGKILL");
      if (group !== undefined) runningGroups.delete(group);
      drainTimer = setTimeout(() => {
        child.stdout.destroy();
        child.stderr.destroy();
      }, DRAIN_MS);
    });
    child.once("close", (code, signal) => {
      clearTimeout(drainTimer);
      options.stdout.end();
      options.stderr.end();
      resolve({ returncode: code ?? 128 + (signal === null ? 0 : constants.signals[signal]), signal });
    });
    if (options.signal.aborted) onAbort();
    else options.signal.addEventListener("abort", onAbort, { once: true });
  });
}

/**
 * The shell with the command's text in a variable: every user of the machine can read arguments, and a template may have put a
 * secret into the text. The variable is gone before the text begins, on its first line, so that numbers of lines are right.
 */
function shellProgram({ command, env, cwd, files }: ShellCommand): Program {
  let name = "FLOW_COMMAND";
  while (name in env) name += "_";
  return {
    file: "/bin/sh",
    args: ["-c", `eval "unset ${name}; $${name}"`],
    cwd,
    env: { ...env, [name]: command },
    files,
  };
}

/** Running groups. When this program exits in a hurry (a second Ctrl-C), it kills them. */
const runningGroups = new Set<number>();
let isWatching = false;

function watchGroup(group: number): void {
  runningGroups.add(group);
  if (isWatching) return;
  isWatching = true;
  process.once("exit", () => {
    for (const running of runningGroups) signalGroup(running, "SIGKILL");
  });
}

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid !== undefined) send(-pid, signal);
}

/**
 * A negative id names the whole group. Never throws: ESRCH says that everything in it has ended, EPERM that what is left
 * in it belongs to another user now (a setuid program), and nothing else can be done about either.
 */
function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {}
}

/**
 * The processes of a group, without its first, parents before their children: a shell whose command ends before it would say so,
 * and go on with its next one.
 */
function membersOf(group: number | undefined): number[] {
  const parents = new Map<number, number>();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      // pid (name) state parent group …; the name may have blanks and parentheses of its own.
      const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
      const [, parent, itsGroup] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      if (Number(itsGroup) === group) parents.set(Number(pid), Number(parent));
    } catch {
      // It has ended meanwhile.
    }
  }
  const depthOf = (pid: number): number => (parents.has(pid) ? 1 + depthOf(parents.get(pid)!) : 0);
  const members = [...parents.keys()].filter((pid) => pid !== group);
  return members.sort((left, right) => depthOf(left) - depthOf(right));
}

/** Collects one stream: its first bytes as text, and every line for the log. */
export interface OutputCapture {
  write(chunk: Buffer): void;
  /** The stream ended: what stands after the last line break is a line too. */
  end(): void;
  text(): string;
  /** More came than was kept. */
  truncated(): boolean;
}

/** A line longer than this is logged in pieces. */
const LINE_CHARS_MAX = 64 * 1024;

/** Keeps the first `bytesMax` bytes; hands every line to `onLine`, kept or not. */
export function captureOutput(bytesMax: number, onLine: (line: string) => void): OutputCapture {
  const kept: Buffer[] = [];
  let keptBytes = 0;
  let cut = false;
  let decoder = new StringDecoder("utf8");
  let rest = "";

  function emitLines(text: string): void {
    const lines = (rest + text).split("\n");
    const unfinished = lines.pop() ?? "";
    for (const line of lines) {
      const last = emitLong(line);
      onLine(last.endsWith("\r") ? last.slice(0, -1) : last);
    }
    rest = emitLong(unfinished);
  }

  /** Emits what is too long in pieces, always the same ones however the text arrives; gives the last, which is not. */
  function emitLong(line: string): string {
    let left = line;
    while (left.length > LINE_CHARS_MAX) {
      onLine(left.slice(0, LINE_CHARS_MAX));
      left = left.slice(LINE_CHARS_MAX);
    }
    return left;
  }

  return {
    write(chunk) {
      const room = bytesMax - keptBytes;
      if (chunk.length > room) cut = true;
      if (room > 0) {
        // A copy: a slice of a small chunk would keep the whole read buffer alive.
        const part = Buffer.from(chunk.subarray(0, room));
        kept.push(part);
        keptBytes += part.length;
      }
      emitLines(decoder.write(chunk));
    },
    end() {
      emitLines(decoder.end());
      if (rest !== "") onLine(rest);
      rest = "";
      decoder = new StringDecoder("utf8");
    },
    text: () => Buffer.concat(kept, keptBytes).toString("utf8"),
    truncated: () => cut,
  };
}
