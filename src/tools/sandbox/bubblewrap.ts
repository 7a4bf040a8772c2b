import { type Program, type SandboxLimits, SCRATCH_FOLDER } from "./sandbox.ts";
import type { VisibleFile } from "./visible-files.ts";

/** What a sandbox is made of, whichever tool makes it. */
export interface SandboxPlan {
  files: readonly VisibleFile[];
  /** Files of the worker that appear elsewhere in the sandbox: path on the machine, path within. */
  extra: readonly { source: string; path: string }[];
  /** False gives a network of its own, with a loopback interface alone. */
  sharesNetwork: boolean;
  /** Whether the kernel lets a sandbox mount a /proc of its own: not in most containers, whose own is masked. */
  hasProc: boolean;
  limits: SandboxLimits;
}

/**
 * How bubblewrap starts the program: in namespaces of its own for users, processes, mounts, IPC and host name, without
 * capabilities and without a way to new ones, with a read-only root. It dies with the worker.
 */
export function bubblewrapCommand(bubblewrap: string, plan: SandboxPlan, program: Program): Program {
  const args = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"];
  if (!plan.sharesNetwork) args.push("--unshare-net");
  args.push("--die-with-parent", "--cap-drop", "ALL", "--hostname", "task");
  for (const file of plan.files) {
    if (file.type === "link") args.push("--symlink", file.target, file.path);
    else args.push("--ro-bind", file.source, file.path);
  }
  args.push("--dev", "/dev");
  if (plan.hasProc) args.push("--proc", "/proc");
  args.push("--size", String(plan.limits.scratchBytes), "--tmpfs", SCRATCH_FOLDER);
  for (const { source, path } of plan.extra) args.push("--ro-bind", source, path);
  args.push("--remount-ro", "/", "--chdir", "/", "--", "/bin/sh", "-c", START_SCRIPT, "sh");
  return {
    ...program,
    file: bubblewrap,
    args: [...args, ...limitArguments(plan.limits), program.cwd, program.file, ...program.args],
    cwd: "/",
  };
}

/**
 * The first program within a sandbox: sets the limits, enters the folder and gives way to the program. dash and busybox call
 * the limit of processes `-p`, bash `-u`.
 */
export const START_SCRIPT = `
ulimit -S -v "$1"; ulimit -H -v "$1"
ulimit -u "$2" 2>/dev/null || ulimit -p "$2" 2>/dev/null
ulimit -f "$3"; ulimit -n "$4"; ulimit -t "$5"; ulimit -c 0
cd -- "$6" || exit 126
shift 6
exec "$@"
`;

/** The limits in the units of the shell: KiB, number, blocks of 512 bytes, number, seconds. */
export function limitArguments({ memoryBytes, processes, fileBytes, openFiles, cpuSeconds }: SandboxLimits): string[] {
  return [memoryBytes / 1024, processes, fileBytes / 512, openFiles, cpuSeconds].map((limit) =>
    String(Math.floor(limit)),
  );
}
