/** A program as it is started: with a sandbox around it, or without. */
export interface Program {
  /** Path, or a name that is looked up on PATH. */
  file: string;
  args: readonly string[];
  /** The whole environment. */
  env: Readonly<Record<string, string>>;
  /** Working directory, as the program sees it. */
  cwd: string;
  /** Folder of the machine that the program writes its files to; it sees it at {@link Sandbox.files}. */
  files?: string;
}

/** What keeps the code of tasks apart from the worker: bubblewrap, util-linux' `unshare`, or nothing. */
export type SandboxKind = "bubblewrap" | "unshare" | "none";

/** How much one program may use, with everything that it starts. */
export interface SandboxLimits {
  /** Address space of each process, bytes. */
  memoryBytes: number;
  /** Processes and threads. Not enforced by Linux for a worker that runs as root. */
  processes: number;
  /** Largest file, bytes. */
  fileBytes: number;
  /** All files of the scratch folder, bytes. They are kept in memory. */
  scratchBytes: number;
  /** Open files of each process. */
  openFiles: number;
  /** CPU time of each process, seconds. */
  cpuSeconds: number;
}

/** What tasks may use unless settings say otherwise. Libraries such as numpy reserve far more memory than they use. */
export const DEFAULT_LIMITS: SandboxLimits = {
  memoryBytes: 4 * 1024 ** 3,
  processes: 512,
  fileBytes: 2 * 1024 ** 3,
  scratchBytes: 512 * 1024 ** 2,
  openFiles: 4_096,
  cpuSeconds: 3_600,
};

/** What code reaches over the network: what the address guard lets through, everything, or nothing. */
export type TaskNetwork = "guarded" | "open" | "none";

/** Starts programs where they see neither the worker nor its files. */
export interface Sandbox {
  readonly kind: SandboxKind;
  /** How code is kept apart, or why it is not, for people: `bubblewrap, guarded network`. */
  readonly summary: string;
  /** Folder that programs may write to, empty at the start of each task; undefined: no sandbox empties one. */
  readonly scratch: string | undefined;
  /** Folder that programs start in; undefined: the working directory of the worker. */
  readonly workFolder: string | undefined;
  /** Where folders for the files of programs are made, and where each program sees its own; undefined: no sandbox shows another place. */
  readonly files: { root: string; path: string } | undefined;
  /** How to start a program within. Its environment gets what it needs to reach the network. */
  wrap(program: Program): Program;
  /** Closes what the sandboxes share. Programs that run keep running, without a network. */
  close(): Promise<void>;
}

/** The folder of a sandbox that programs may write to. Each sandbox has an empty one. */
export const SCRATCH_FOLDER = "/tmp";

/** Where a program in a sandbox sees the folder for its files ({@link Program.files}). */
export const FILES_FOLDER = "/run/flow/artifacts";

/** No sandbox: programs run as the user of this process, and see what it sees. */
export function noSandbox(why: string, workFolder?: string): Sandbox {
  return {
    kind: "none",
    summary: why,
    scratch: undefined,
    workFolder,
    files: undefined,
    wrap: (program) => program,
    close: async () => {},
  };
}

/** An environment whose folders are those of the sandbox: outside it is as it was. */
export function inScratch(env: Readonly<Record<string, string>>, { scratch }: Sandbox): Record<string, string> {
  return scratch === undefined ? { ...env } : { ...env, HOME: scratch, TMPDIR: scratch };
}

/** What to do about a file that a sandbox does not show, or that is only read there: the end of a task's error message. */
export const MISSING_FILE_HINT =
  "The code runs in a sandbox, which shows it no other folders of the machine: FLOW_TASK_READABLE of the worker adds folders to read, " +
  "FLOW_TASK_FOLDER one to write to";
