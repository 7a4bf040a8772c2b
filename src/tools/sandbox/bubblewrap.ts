import { FILES_FOLDER, type Program, type SandboxLimits, SCRATCH_FOLDER } from "./sandbox.ts";
import type { SharedMount } from "./shared-folder.ts";
import { outerEnvironment, START_SCRIPT, startArguments } from "./start-script.ts";
import type { VisibleFile } from "./visible-files.ts";

/** What a sandbox is made of, whichever tool makes it. */
export interface SandboxPlan {
  files: readonly VisibleFile[];
  /** Files of the worker that appear elsewhere in the sandbox: path on the machine, path within. */
  extra: readonly { source: string; path: string }[];
  /** What is shown of the folder that programs share with the machine, in this order. */
  shared: readonly SharedMount[];
  /** An empty file without permissions: what is shown instead of a file that is hidden. */
  emptyFile: string;
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
  // First of all: what is shown may lie below it.
  args.push("--size", String(plan.limits.scratchBytes), "--tmpfs", SCRATCH_FOLDER);
  for (const file of plan.files) {
    if (file.type === "link") args.push("--symlink", file.target, file.path);
    else args.push("--ro-bind", file.source, file.path);
  }
  args.push("--dev", "/dev");
  if (plan.hasProc) args.push("--proc", "/proc");
  for (const mount of plan.shared) args.push(...sharedArguments(mount, plan.emptyFile));
  for (const { source, path } of plan.extra) args.push("--ro-bind", source, path);
  if (program.files !== undefined) args.push("--bind", program.files, FILES_FOLDER);
  args.push("--remount-ro", "/", "--chdir", "/", "--", "/bin/sh", "-c", START_SCRIPT, "sh");
  return {
    file: bubblewrap,
    args: [...args, ...startArguments(plan.limits, program)],
    env: outerEnvironment(program.env),
    cwd: "/",
  };
}

function sharedArguments({ access, path, isFolder }: SharedMount, emptyFile: string): string[] {
  if (access === "write") return ["--bind", path, path];
  if (access === "read") return ["--ro-bind", path, path];
  return isFolder ? ["--tmpfs", path, "--remount-ro", path] : ["--ro-bind", emptyFile, path];
}
