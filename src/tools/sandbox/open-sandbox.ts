import { mkdirSync, writeFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { EgressGuard } from "../../platform/http/egress.ts";
import { ownFolder } from "../../platform/system/own-folder.ts";
import { readPythonFile } from "../../platform/system/python-file.ts";
import { type Ended, runProgram } from "../../platform/system/run-program.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { bubblewrapCommand, type SandboxPlan } from "./bubblewrap.ts";
import { type ControlGroups, openControlGroups } from "./control-groups.ts";
import { openEgressProxy } from "./egress-proxy.ts";
import {
  FILES_FOLDER,
  noSandbox,
  type Program,
  type Sandbox,
  type SandboxLimits,
  SCRATCH_FOLDER,
  type TaskNetwork,
} from "./sandbox.ts";
import { assertShareable, isWithin, sharedFolder } from "./shared-folder.ts";
import { unshareCommand } from "./unshare.ts";
import { type VisibleFile, visibleFiles } from "./visible-files.ts";

/** What {@link openSandbox} takes. */
export interface SandboxOptions {
  /**
   * `auto`: the strongest kind that works here; `strict`: the same, and an error where none works; `none`: no sandbox
   * (`FLOW_TASK_ISOLATION`).
   */
  isolation: "auto" | "strict" | "none";
  /** What code may reach (`FLOW_TASK_NETWORK`). */
  network: TaskNetwork;
  /** Folders and files that code may read besides those of the system (`FLOW_TASK_READABLE`). */
  readable: readonly string[];
  /** Folder that code starts in, and reads and writes (`FLOW_TASK_FOLDER`); undefined: an empty one of its own. */
  folder: string | undefined;
  /** Files and folders that are never shown, absolute. */
  hidden: readonly string[];
  limits: SandboxLimits;
  /** Decides which addresses code may reach, where the network is guarded. */
  guard: EgressGuard;
  /** Path or name of the Python that runs python tasks and forwards to the proxy. */
  python: string;
}

/** Port of the proxy within each sandbox, whose network is its own. */
const PROXY_PORT = 3128;
const PROXY_PATH = "/run/flow/egress.sock";
const FORWARDER_PATH = "/run/flow/forwarder.py";
const PROBE: Program = { file: "/bin/sh", args: ["-c", "exit 42"], env: {}, cwd: SCRATCH_FOLDER };
const PROBE_STATUS = 42;

interface Shape {
  kind: "bubblewrap" | "unshare";
  hasProc: boolean;
  command(plan: SandboxPlan, program: Program): Program;
}

/**
 * Tries what this machine has, the strongest first, by starting a program in it. Throws FlowError `INVALID_SETTING` for
 * `strict` where nothing works, and for a folder that cannot be shown.
 */
export async function openSandbox(options: SandboxOptions): Promise<Sandbox> {
  if (options.folder !== undefined) assertShareable(options.folder, options.hidden);
  const above = options.readable.find((path) => isWithin(path, SCRATCH_FOLDER));
  if (above !== undefined) {
    throw new FlowError(
      "INVALID_SETTING",
      `FLOW_TASK_READABLE has ${above}, which holds the scratch folder ${SCRATCH_FOLDER}`,
    );
  }
  if (options.isolation === "none") return noSandbox("none (FLOW_TASK_ISOLATION=none)", options.folder);
  const folder = ownFolder("sandbox");
  const root = join(folder, "root");
  mkdirSync(root);
  mkdirSync(join(folder, "files"));
  writeFileSync(join(folder, "empty"), "", { mode: 0 });
  const [found, python] = await Promise.all([firstThatWorks(options, root), pythonFolders(options.python)]);
  const files = visibleFiles([...(python?.folders ?? []), ...options.readable]);
  if ("why" in found) {
    await rm(folder, { recursive: true, force: true });
    if (options.isolation === "strict") throw new FlowError("INVALID_SETTING", strictMessage(found.why));
    return noSandbox(`none (${found.why})`, options.folder);
  }
  return await sandboxOf(found, options, files, folder, python?.executable);
}

async function sandboxOf(
  shape: Shape,
  options: SandboxOptions,
  files: readonly VisibleFile[],
  folder: string,
  python: string | undefined,
): Promise<Sandbox> {
  const isGuarded = options.network === "guarded" && python !== undefined;
  const proxy = isGuarded ? await openEgressProxy(join(folder, "egress.sock"), options.guard) : undefined;
  const forwarder = join(folder, "forwarder.py");
  if (proxy !== undefined) await writeFile(forwarder, readPythonFile("src/tools/sandbox/forwarder.py"));
  const shared = options.folder === undefined ? undefined : sharedFolder(options.folder, [...options.hidden, folder]);
  const plan: SandboxPlan = {
    files,
    shared: shared?.mounts ?? [],
    emptyFile: join(folder, "empty"),
    extra:
      proxy === undefined
        ? []
        : [
            { source: proxy.socketPath, path: PROXY_PATH },
            { source: forwarder, path: FORWARDER_PATH },
          ],
    sharesNetwork: options.network === "open",
    hasProc: shape.hasProc,
    limits: options.limits,
  };
  const groups = await workingGroups(options.limits);
  const wrap = (program: Program) => {
    const sandboxed = shape.command(plan, proxy === undefined ? program : forwarded(program, python!));
    return groups === undefined ? sandboxed : groups.wrap(sandboxed);
  };
  const network =
    proxy === undefined ? (options.network === "open" ? "open network" : "no network") : "guarded network";
  return {
    kind: shape.kind,
    summary: [shape.kind, network, ...(shape.hasProc ? [] : ["no /proc"]), ...limitsText(groups)].join(", "),
    scratch: SCRATCH_FOLDER,
    workFolder: shared?.path ?? SCRATCH_FOLDER,
    files: { root: join(folder, "files"), path: FILES_FOLDER },
    wrap,
    async close() {
      await groups?.close();
      await proxy?.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Control groups, if a program starts in one. */
async function workingGroups(limits: SandboxLimits): Promise<ControlGroups | undefined> {
  const groups = openControlGroups(limits);
  if (groups === undefined || (await run(groups.wrap(PROBE))).code === PROBE_STATUS) return groups;
  await groups.close();
  return undefined;
}

/** What limits processes, where it is not what binds every other worker: limits of the user who runs it (`setrlimit`). */
function limitsText(groups: ControlGroups | undefined): string[] {
  if (groups !== undefined) return [groups.summary];
  return process.getuid?.() === 0 ? ["any number of processes (the worker runs as root)"] : [];
}

/** The program behind the forwarder. Some clients read the proxy's variables in small letters, others in capitals. */
function forwarded(program: Program, python: string): Program {
  const proxy = `http://127.0.0.1:${PROXY_PORT}`;
  const names = ["http_proxy", "https_proxy", "all_proxy"];
  const own = "localhost,127.0.0.1,::1";
  return {
    ...program,
    file: python,
    args: ["-I", "-S", FORWARDER_PATH, String(PROXY_PORT), PROXY_PATH, program.file, ...program.args],
    env: {
      ...Object.fromEntries(
        names.flatMap((name) => [
          [name, proxy],
          [name.toUpperCase(), proxy],
        ]),
      ),
      no_proxy: own,
      NO_PROXY: own,
      ...program.env,
    },
  };
}

/** The first shape in which a program runs, or why the last one does not. */
async function firstThatWorks(options: SandboxOptions, mountPoint: string): Promise<Shape | { why: string }> {
  if (process.platform !== "linux") return { why: "only Linux has what a sandbox needs" };
  const files = visibleFiles([]);
  let why = "";
  for (const shape of shapes(mountPoint)) {
    const sharesNetwork = options.network === "open";
    const plan = {
      files,
      extra: [],
      sharesNetwork,
      hasProc: shape.hasProc,
      limits: options.limits,
      shared: [],
      emptyFile: "",
    };
    const ended = await run(shape.command(plan, PROBE));
    if (ended.code === PROBE_STATUS) return shape;
    why ||= `${shape.kind}: ${ended.output.split("\n").at(-1) ?? `status ${ended.code}`}`;
  }
  return { why };
}

function shapes(mountPoint: string): Shape[] {
  const kinds: Omit<Shape, "hasProc">[] = [
    { kind: "bubblewrap", command: (plan, program) => bubblewrapCommand("bwrap", plan, program) },
    { kind: "unshare", command: (plan, program) => unshareCommand(mountPoint, plan, program) },
  ];
  return kinds.flatMap((kind) => [true, false].map((hasProc) => ({ ...kind, hasProc })));
}

async function run(program: Program): Promise<Ended> {
  return await runProgram(program.file, program.args, { folder: program.cwd });
}

/** Where the modules of a Python lie, and its own path behind wrappers and links; undefined where it cannot be started. */
async function pythonFolders(python: string): Promise<{ executable: string; folders: string[] } | undefined> {
  const ended = await run({ file: python, args: ["-c", PYTHON_FOLDERS], env: {}, cwd: "/" });
  try {
    return ended.code === 0 ? (JSON.parse(ended.output) as { executable: string; folders: string[] }) : undefined;
  } catch (error) {
    throw new FlowError("INVALID_SETTING", `"${python}" does not answer as Python does: ${messageOf(error)}`);
  }
}

const PYTHON_FOLDERS = `
import json, os, sys
places = [sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(sys.executable)] + [path for path in sys.path if path]
print(json.dumps({"executable": sys.executable, "folders": [path for path in places if os.path.isdir(path)]}))
`;

function strictMessage(why: string): string {
  return (
    `FLOW_TASK_ISOLATION=strict, and no sandbox can be made here (${why}). Install bubblewrap, let this user make user ` +
    "namespaces, or set FLOW_TASK_ISOLATION=auto to run the code of tasks without one."
  );
}
