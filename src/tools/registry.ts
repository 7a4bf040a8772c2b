import { createEgressGuard, type EgressGuard } from "../platform/http/egress.ts";
import type { ProxyOf } from "../platform/http/proxy.ts";
import type { ResultStore } from "../ports/result-store.ts";
import { FlowError } from "../schema/words/errors.ts";
import { isJsonObject } from "../schema/words/json.ts";
import { failed } from "../schema/words/outcome.ts";
import { PARSED_ONLY_KINDS, RUNNABLE_KINDS, type RunnableKind } from "../schema/words/playbook.ts";
import type { Tool } from "./contract/tool.ts";
import type { DuckdbOptions } from "./duckdb/duckdb.ts";
import type { HttpOptions } from "./http/http.ts";
import type { McpOptions } from "./mcp/mcp.ts";
import type { NatsOptions } from "./nats/nats.ts";
import type { PythonToolOptions } from "./python/python.ts";
import type { Sandbox } from "./sandbox/sandbox.ts";
import { SCRIPT_BYTES_MAX } from "./scripts/auth.ts";
import type { ScriptFetcher } from "./scripts/http.ts";
import type { ShellOptions } from "./shell/shell.ts";
import type { SnowflakeOptions } from "./snowflake/snowflake.ts";
import type { SqldbOptions } from "./sqldb/sqldb.ts";
import type { TransferOptions } from "./transfer/transfer.ts";

/** Kinds that flow's drivers run. The worker itself runs `playbook`, `workbook` and `wait`. */
export type DriverKind = Exclude<RunnableKind, "playbook" | "workbook" | "wait">;

/**
 * Kinds whose runs have no effect and take no time: they only evaluate templates, and a wait is parked. A run may be repeated or thrown away, so a
 * server runs such steps itself (`worker/command/pure-steps`). A closed list: a kind is added when nothing outside can see its runs.
 */
export const PURE_KINDS: ReadonlySet<string> = new Set<RunnableKind>(["noop", "wait"]);

/** Everything that the tools need to know. */
export interface ToolSettings {
  /** Private address ranges that tools may reach (`FLOW_HTTP_ALLOW_PRIVATE`). */
  allowPrivate: "all" | readonly string[];
  /** Which HTTP calls go through a proxy (`HTTPS_PROXY` and its like); default none. */
  proxyOf?: ProxyOf | undefined;
  /** Where `artifact` reads stored results. */
  store: ResultStore;
  /** Where the code of `python` and `shell` tasks runs. Default: as this process does. */
  sandbox?: Promise<Sandbox>;
  /** Kinds that this worker runs (`FLOW_WORKER_TOOLS`). Default: all. */
  kinds?: readonly string[];
  /** Why a known kind is not among them, and what to do. Default: `FLOW_WORKER_TOOLS` leaves it out. */
  whyNot?(kind: string): string;
  http?: Omit<HttpOptions, "egress">;
  mcp?: Omit<McpOptions, "egress">;
  nats?: Omit<NatsOptions, "egress">;
  shell?: ShellOptions;
  sqldb?: Omit<SqldbOptions, "egress">;
  duckdb?: Omit<DuckdbOptions, "network">;
  warehouse?: Omit<SnowflakeOptions, "egress">;
  transfer?: Omit<TransferOptions, "egress" | "sqlEgress" | "driver">;
  python?: PythonToolOptions;
}

/** The tools of a process: one instance of each kind, created on first use. */
export interface ToolRegistry {
  /** A kind that cannot be run here gives a tool that answers with an error of kind `configuration`. */
  get(kind: string): Promise<Tool>;
  /** Closes every tool that was made. Afterwards `get` throws. */
  close(): Promise<void>;
}

/**
 * Builds the registry. A driver's module is loaded on the first use of its kind: a run of `noop` steps loads no HTTP client, no
 * database driver and no protocol SDK, which together take longer to load than such a run lasts.
 */
export function createToolRegistry(settings: ToolSettings): ToolRegistry {
  const egress = createEgressGuard({ allowPrivate: settings.allowPrivate, proxyOf: settings.proxyOf });
  const made = new Map<DriverKind, Promise<Tool>>();
  let closed = false;
  const registry: ToolRegistry = {
    async get(kind) {
      if (closed) throw new FlowError("INTERNAL", `Tool ${kind} was asked for after the tools were closed.`);
      if (!isDriverKind(kind)) return unavailableTool(reasonUnavailable(kind));
      if (settings.kinds !== undefined && !settings.kinds.includes(kind)) {
        return unavailableTool((settings.whyNot ?? leftOut)(kind));
      }
      let tool = made.get(kind);
      if (tool === undefined) {
        tool = LOADERS[kind](settings, egress, (other) => registry.get(other));
        made.set(kind, tool);
      }
      return await tool;
    },
    async close() {
      closed = true;
      // A module that failed to load has nothing to close; its caller has the error.
      const tools = await Promise.allSettled(made.values());
      made.clear();
      await Promise.all(
        tools.map(async (tool) => {
          if (tool.status === "fulfilled") await tool.value.close?.();
        }),
      );
    },
  };
  return registry;
}

type Loader = (settings: ToolSettings, egress: EgressGuard, get: ToolRegistry["get"]) => Promise<Tool>;

const LOADERS: { readonly [K in DriverKind]: Loader } = {
  http: async (settings, egress) => (await import("./http/http.ts")).createHttpTool({ ...settings.http, egress }),
  mcp: async (settings, egress) => (await import("./mcp/mcp.ts")).createMcpTool({ ...settings.mcp, egress }),
  sqldb: async (settings, egress, get) => {
    const [{ createSqldbTool }, { sqlEgress }] = await Promise.all([
      import("./sqldb/sqldb.ts"),
      import("./sql/socket.ts"),
    ]);
    const guards = sqlEgress(settings.allowPrivate, egress);
    return await scripted("sqldb", createSqldbTool({ ...settings.sqldb, egress: guards }), settings, egress, get);
  },
  duckdb: async (settings, egress, get) => {
    const { createDuckdbTool } = await import("./duckdb/duckdb.ts");
    // What DuckDB itself fetches passes no address guard: it may only where nothing is guarded.
    const tool = createDuckdbTool({ ...settings.duckdb, network: settings.allowPrivate === "all" });
    return await scripted("duckdb", tool, settings, egress, get);
  },
  warehouse: async (settings, egress, get) => {
    const { createSnowflakeTool } = await import("./snowflake/snowflake.ts");
    return await scripted("warehouse", createSnowflakeTool({ ...settings.warehouse, egress }), settings, egress, get);
  },
  transfer: async (settings, egress, get) => {
    const [{ createTransferTool }, { sqlEgress }] = await Promise.all([
      import("./transfer/transfer.ts"),
      import("./sql/socket.ts"),
    ]);
    const guards = sqlEgress(settings.allowPrivate, egress);
    return createTransferTool({ ...settings.transfer, egress, sqlEgress: guards, driver: get });
  },
  shell: async (settings) =>
    (await import("./shell/shell.ts")).createShellTool({ ...(await sandboxOf(settings)), ...settings.shell }),
  python: async (settings, egress, get) => {
    const { createPythonTool } = await import("./python/python.ts");
    const fetcher = { scriptFetcher: await scriptFetcher(settings, egress, get) };
    return createPythonTool({ ...fetcher, ...(await sandboxOf(settings)), ...settings.python });
  },
  nats: async (settings, egress) => (await import("./nats/nats.ts")).createNatsTool({ ...settings.nats, egress }),
  artifact: async (settings) => (await import("./artifact.ts")).createArtifactTool({ store: settings.store }),
  noop: () => Promise.resolve(createNoopTool()),
};

async function sandboxOf({ sandbox }: ToolSettings): Promise<{ sandbox?: Sandbox }> {
  return sandbox === undefined ? {} : { sandbox: await sandbox };
}

async function scriptFetcher(
  settings: ToolSettings,
  egress: EgressGuard,
  get: ToolRegistry["get"],
): Promise<ScriptFetcher> {
  const { createScriptFetcher } = await import("./scripts/http.ts");
  // A separate tool: a script is far smaller than an http task's answer may be.
  return createScriptFetcher(async () =>
    settings.kinds?.includes("http") === false
      ? await get("http")
      : (await import("./http/http.ts")).createHttpTool({
          ...settings.http,
          egress,
          responseBytesMax: SCRIPT_BYTES_MAX,
        }),
  );
}

/** A SQL tool whose `script` may come from the places that those of python come from. */
async function scripted<T extends Tool>(
  kind: string,
  tool: T,
  settings: ToolSettings,
  egress: EgressGuard,
  get: ToolRegistry["get"],
): Promise<T> {
  const { withSqlScripts } = await import("./sqldb/script.ts");
  const fetcher = await scriptFetcher(settings, egress, get);
  return withSqlScripts(kind, tool, { files: settings.python?.scriptFiles ?? "document", fetcher });
}

function isDriverKind(kind: string): kind is DriverKind {
  return Object.hasOwn(LOADERS, kind);
}

function reasonUnavailable(kind: string): string {
  if ((RUNNABLE_KINDS as readonly string[]).includes(kind))
    return `Tasks of kind "${kind}" are carried out by the worker, not by a tool.`;
  const known = `This program runs ${RUNNABLE_KINDS.join(", ")}.`;
  if ((PARSED_ONLY_KINDS as readonly string[]).includes(kind)) {
    return `Tasks of kind "${kind}" cannot be run: this program has no runner for it. ${known}`;
  }
  return `Tasks of kind "${kind}" cannot be run: no such kind is known. ${known}`;
}

function leftOut(kind: string): string {
  return `Tasks of kind "${kind}" are not allowed on this worker: add ${kind} to FLOW_WORKER_TOOLS.`;
}

function unavailableTool(message: string): Tool {
  return { run: () => Promise.resolve(failed("configuration", "KIND_NOT_AVAILABLE", message)) };
}

/** `noop`: does nothing and answers `result`, or `{status: ok}` without one (language document, section 8). */
export function createNoopTool(): Tool {
  return {
    run(call) {
      const result = call.config["result"] ?? null;
      if (result === null) return Promise.resolve({ status: "ok", data: { status: "ok" } });
      if (isJsonObject(result)) return Promise.resolve({ status: "ok", data: result });
      const message = `The noop task is not configured correctly: key "result" expects a map, got ${typeName(result)}.`;
      return Promise.resolve(failed("configuration", "INVALID_CONFIG", message));
    },
  };
}

function typeName(value: unknown): string {
  return Array.isArray(value) ? "a list" : `a ${typeof value}`;
}
