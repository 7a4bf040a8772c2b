import { inheritedEnvironment } from "../../platform/config/config.ts";
import type { Program, SandboxLimits } from "./sandbox.ts";

/** What {@link START_SCRIPT} says where the folder that a program is to start in is not in the sandbox, with exit status 126. */
export const NO_FOLDER = "sandbox: no such folder";

/** Before the names of a program's variables, as long as it is not in its sandbox. */
const INSIDE = "FLOW_INSIDE_";

/**
 * The first program within a sandbox: sets the limits, enters the folder, gives the variables their names and gives way to the
 * program. dash and busybox call the limit of processes `-p`, bash `-u`. At the limit of CPU time comes SIGXCPU, 5 s
 * later SIGKILL.
 */
export const START_SCRIPT = `
ulimit -S -v "$1"; ulimit -H -v "$1"
ulimit -u "$2" 2>/dev/null || ulimit -p "$2" 2>/dev/null
ulimit -f "$3"; ulimit -n "$4"; ulimit -c 0
ulimit -S -t "$5"; ulimit -H -t $(($5 + 5))
cd -- "$6" 2>/dev/null || { echo "${NO_FOLDER}" >&2; exit 126; }
for name in $7; do eval "export $name=\\"\\$${INSIDE}$name\\"; unset ${INSIDE}$name"; done
shift 7
exec "$@"
`;

/** Shells do not let these be set. */
const OF_SHELLS = new Set(["UID", "EUID", "PPID", "SHELLOPTS", "BASHOPTS", "BASH_VERSINFO"]);

/** The arguments of the script: the limits in the units of the shell (KiB, number, blocks of 512 bytes, number, seconds), the program. */
export function startArguments(limits: SandboxLimits, { file, args, env, cwd }: Program): string[] {
  const { memoryBytes, processes, fileBytes, openFiles, cpuSeconds } = limits;
  const inUnits = [memoryBytes / 1024, processes, fileBytes / 512, openFiles, cpuSeconds];
  return [...inUnits.map((limit) => String(Math.floor(limit))), cwd, names(env).join(" "), file, ...args];
}

/**
 * The environment of what makes the sandbox. The program's variables have other names there: it runs outside, and with an
 * LD_PRELOAD or a PATH of a task's author it would run what the author wants.
 */
export function outerEnvironment(env: Readonly<Record<string, string>>): Record<string, string> {
  const path = inheritedEnvironment()["PATH"];
  return {
    ...(path !== undefined && { PATH: path }),
    ...Object.fromEntries(names(env).map((name) => [INSIDE + name, env[name]!])),
  };
}

/** Names go into a script: nothing else than a name may be one. */
function names(env: Readonly<Record<string, string>>): string[] {
  return Object.keys(env).filter((name) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !OF_SHELLS.has(name));
}
