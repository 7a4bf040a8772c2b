import { isAbsolute } from "node:path";
import { FlowError } from "../../schema/words/errors.ts";
import { countSetting, oneOf, secondsSetting, setting } from "../setting.ts";

/** Settings of a worker. Times are milliseconds in the program. */
export const WORKER_SETTINGS = {
  workerName: setting({
    name: "FLOW_WORKER_NAME",
    meaning: "Name of a worker; no two may have the same at a time",
    default: "<hostname>-<process id>-<random>",
    parse: (text) => {
      if (text === undefined || (text.length <= 255 && !/\p{Cc}/u.test(text))) return text;
      throw new FlowError(
        "INVALID_SETTING",
        "FLOW_WORKER_NAME must be at most 255 characters without control characters",
      );
    },
  }),
  workerCapacity: countSetting("FLOW_WORKER_CAPACITY", "Commands that a worker works on at a time", 64, 10_000),
  workerLabels: setting({
    name: "FLOW_WORKER_LABELS",
    meaning: "Labels of a worker, as gpu=yes,zone=a: commands that ask for labels go to workers that have them",
    default: "none",
    parse: (text) => labels("FLOW_WORKER_LABELS", text),
  }),
  scriptFolder: setting({
    name: "FLOW_SCRIPT_FOLDER",
    meaning: "Folder of the script files that python tasks of a worker may name; a local run takes the playbook's",
    default: "none",
    parse: (text) => text,
  }),
  workerHeartbeatMs: secondsSetting("FLOW_WORKER_HEARTBEAT_SECONDS", "Time between heartbeats of a worker", 15),
  workerDrainMs: secondsSetting(
    "FLOW_WORKER_DRAIN_SECONDS",
    "Time that running commands get to end when a worker is stopped",
    20,
  ),
} as const;

/** `a=b,c=d` as a map. */
function labels(name: string, text: string | undefined): Readonly<Record<string, string>> {
  const pairs = (text ?? "").split(",").filter((pair) => pair.trim() !== "");
  const entries = pairs.map((pair) => {
    const [key, value] = pair.split(/=(.*)/s).map((part) => part.trim());
    if (key === undefined || !/^[\w./-]{1,63}$/.test(key) || value === undefined || value.length > 255) {
      throw new FlowError("INVALID_SETTING", `${name} must be pairs as gpu=yes,zone=a, got '${pair.trim()}'`);
    }
    return [key, value];
  });
  return Object.freeze(Object.fromEntries(entries) as Record<string, string>);
}

/** Settings of `duckdb` tasks. */
export const DUCKDB_SETTINGS = {
  duckdbFiles: setting({
    name: "FLOW_DUCKDB_FILES",
    meaning: "Folders whose files duckdb tasks may read and write, comma-separated, or 'all' or 'none'",
    default: "all; of a worker with a server elsewhere, or a database of your own: none, so databases in memory only",
    parse: (text) => (text === undefined || text === "all" ? "all" : folders(text === "none" ? "" : text)),
  }),
  duckdbMemory: setting({
    name: "FLOW_DUCKDB_MEMORY",
    meaning: "Memory that one DuckDB database may use, as 512MB or 4GB",
    default: "1GB",
    parse: (text) => memory("FLOW_DUCKDB_MEMORY", text ?? "1GB"),
  }),
} as const;

function folders(text: string): readonly string[] {
  const parts = text.split(",").map((part) => part.trim());
  return Object.freeze(parts.filter((part) => part !== ""));
}

function memory(name: string, text: string): string {
  if (/^[1-9]\d*(\.\d+)?\s*[KMGT](i?B)$/i.test(text)) return text;
  throw new FlowError("INVALID_SETTING", `${name} must be a size such as 512MB or 4GB, got '${text}'`);
}

/** Settings of the sandbox that the code of `python` and `shell` tasks runs in. A local run has none. */
export const ISOLATION_SETTINGS = {
  taskIsolation: setting({
    name: "FLOW_TASK_ISOLATION",
    meaning: "Sandbox of python and shell tasks: auto (the strongest that works), strict (no code without one) or none",
    default: "auto",
    parse: (text) => oneOf("FLOW_TASK_ISOLATION", text ?? "auto", ["auto", "strict", "none"]),
  }),
  taskNetwork: setting({
    name: "FLOW_TASK_NETWORK",
    meaning: "What code in a sandbox reaches: guarded (by an HTTP proxy with the rules of http tasks), open or none",
    default: "guarded; open where FLOW_HTTP_ALLOW_PRIVATE is all",
    parse: (text) => (text === undefined ? undefined : oneOf("FLOW_TASK_NETWORK", text, ["guarded", "open", "none"])),
  }),
  taskReadable: setting({
    name: "FLOW_TASK_READABLE",
    meaning: "Folders that code in a sandbox may read besides programs and libraries, comma-separated",
    default: "none",
    parse: (text) => absolutePaths("FLOW_TASK_READABLE", text),
  }),
  taskFolder: setting({
    name: "FLOW_TASK_FOLDER",
    meaning: "Folder that code in a sandbox starts in, and reads and writes, or 'none' for an empty one of its own",
    default: "none; with the embedded database, on loopback and without tokens: the folder that flow was started in",
    parse: (text) => (text === undefined || text === "none" ? undefined : absolutePaths("FLOW_TASK_FOLDER", text)[0]),
  }),
  taskHidden: setting({
    name: "FLOW_TASK_HIDDEN",
    meaning: "Files and folders in FLOW_TASK_FOLDER that code in a sandbox does not see, comma-separated",
    default: "FLOW_HOME and the files that FLOW_…_FILE name, which are always hidden",
    parse: (text) => absolutePaths("FLOW_TASK_HIDDEN", text),
  }),
  taskMemoryMib: countSetting("FLOW_TASK_MEMORY_MIB", "Memory of one process in a sandbox, MiB", 4_096),
  taskScratchMib: countSetting("FLOW_TASK_SCRATCH_MIB", "Files of the scratch folder of a sandbox, MiB", 512),
  taskCpuSeconds: countSetting("FLOW_TASK_CPU_SECONDS", "CPU time of one process of a task in a sandbox", 3_600),
  taskProcesses: countSetting("FLOW_TASK_PROCESSES", "Processes and threads in a sandbox", 512, 1_000_000),
} as const;

function absolutePaths(name: string, text: string | undefined): readonly string[] {
  const given = folders(text ?? "");
  const relative = given.find((part) => !isAbsolute(part));
  if (relative === undefined) return given;
  throw new FlowError("INVALID_SETTING", `${name} must be whole paths, got '${relative}'`);
}
