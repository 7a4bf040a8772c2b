import { resolve } from "node:path";
import { type Config, isGiven } from "../../platform/config/config.ts";
import { createEgressGuard, type EgressGuard } from "../../platform/http/egress.ts";
import { proxyRules } from "../../platform/http/proxy.ts";
import type { ResultStore } from "../../ports/result-store.ts";
import type { SecretSource } from "../../ports/secret-source.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { PARSED_ONLY_KINDS, RUNNABLE_KINDS } from "../../schema/words/playbook.ts";
import { createToolRegistry, type ToolRegistry } from "../../tools/registry.ts";
import { openSandbox } from "../../tools/sandbox/open-sandbox.ts";
import { DEFAULT_LIMITS, type Sandbox } from "../../tools/sandbox/sandbox.ts";
import { openSecretSource } from "../server/secret-source.ts";

/** What a worker can do. */
export interface WorkerTools {
  tools: ToolRegistry;
  /** Where the code of tasks runs. Rejects with `FlowError` INVALID_SETTING where settings ask for more than there is. */
  sandbox: Promise<Sandbox>;
  /** Requests tokens and secrets, within the same bounds as the tools. */
  secretSource: SecretSource;
  /** Kinds of task that it runs. */
  capabilities: readonly string[];
  /** Kinds that it claims; undefined: all. Kinds without a driver are among them: such a step must fail. */
  claims: readonly string[] | undefined;
}

const MIB = 1024 ** 2;
/** Kinds that the worker itself carries out. */
const UNDRIVEN = ["playbook", "workbook"];

/**
 * The tools of a worker. By default it runs every kind but `shell` and reaches no private address: any user who may register
 * playbooks decides what it runs.
 */
export function createWorkerTools(config: Config): WorkerTools {
  const kinds = toolKinds(config);
  // The server gives results to a claim: each call of `artifact` brings where to read.
  const store: ResultStore = {
    load: (ref) => Promise.reject(new FlowError("INTERNAL", `${ref} was asked for without a claim`)),
  };
  const allowPrivate = isGiven(config, "httpAllowPrivate") ? config.httpAllowPrivate : [];
  const secretSource = openSecretSource(config, allowPrivate);
  const proxyOf = proxyRules(config);
  const sandbox = openTaskSandbox(config, createEgressGuard({ allowPrivate, proxyOf }), allowPrivate);
  // Who waits for it is told. The tools, which may be closed before they need it, are not.
  sandbox.catch(() => undefined);
  const tools = createToolRegistry({
    allowPrivate,
    proxyOf,
    store,
    sandbox,
    ...(kinds !== "all" && { kinds }),
    python: {
      ...defined({ pythonPath: config.python }),
      keepsSpare: true,
      memoryLimitBytes: config.taskMemoryMib * MIB,
      scriptFiles: config.scriptFolder === undefined ? "none" : { folder: config.scriptFolder },
    },
    duckdb: { files: isGiven(config, "duckdbFiles") ? config.duckdbFiles : [], memory: config.duckdbMemory },
  });
  if (kinds === "all") return { tools, sandbox, secretSource, capabilities: RUNNABLE_KINDS, claims: undefined };
  const capabilities = [...kinds, ...UNDRIVEN];
  return { tools, sandbox, secretSource, capabilities, claims: [...capabilities, ...PARSED_ONLY_KINDS] };
}

async function openTaskSandbox(
  config: Config,
  guard: EgressGuard,
  allowPrivate: "all" | readonly string[],
): Promise<Sandbox> {
  return await openSandbox({
    isolation: config.taskIsolation,
    // Where every address may be reached, a guard on the way would only be in it.
    network: config.taskNetwork ?? (allowPrivate === "all" ? "open" : "guarded"),
    readable: config.taskReadable,
    folder: config.taskFolder,
    hidden: hiddenFromTasks(config, process.cwd()),
    limits: {
      ...DEFAULT_LIMITS,
      memoryBytes: config.taskMemoryMib * MIB,
      scratchBytes: config.taskScratchMib * MIB,
      processes: config.taskProcesses,
      cpuSeconds: config.taskCpuSeconds,
    },
    guard,
    python: config.python ?? "python3",
  });
}

/** What code of tasks never sees, absolute: this service's keys, database and socket, and every file that a setting names. */
export function hiddenFromTasks(config: Config, folder: string): string[] {
  const named = Object.entries(config.environment).filter(([name]) => /^FLOW_.+_FILE$/.test(name));
  const socket = config.serverSocket ?? "";
  const files = [config.home, socket, ...named.map(([, path]) => path ?? "")].filter((path) => path !== "");
  return [...files.map((path) => resolve(folder, path)), ...config.taskHidden];
}

function toolKinds(config: Config): "all" | readonly string[] {
  if (isGiven(config, "workerTools")) return config.workerTools;
  return RUNNABLE_KINDS.filter((kind) => kind !== "shell" && !UNDRIVEN.includes(kind));
}
