import { randomBytes } from "node:crypto";
import { systemClock } from "../adapters/system-clock.ts";
import type { StartRequest } from "../engine/decide/start.ts";
import type { ExecutionState } from "../engine/state/state.ts";
import { createSealer } from "../platform/crypto/sealing.ts";
import { createIds } from "../platform/system/ids.ts";
import type { ChildRequest } from "../ports/children.ts";
import type { Clock } from "../ports/clock.ts";
import type { CredentialSource } from "../ports/credentials.ts";
import type { McpKnowledge } from "../ports/mcp-servers.ts";
import type { WritableResultStore } from "../ports/result-store.ts";
import type { SealerSource } from "../ports/sealing.ts";
import type { SecretSource } from "../ports/secret-source.ts";
import { errorsOf, formatDiagnostic } from "../schema/words/diagnostic.ts";
import { FlowError } from "../schema/words/errors.ts";
import type { FlowEvent } from "../schema/words/event.ts";
import type { JsonObject } from "../schema/words/json.ts";
import type { Tool } from "../tools/contract/tool.ts";
import type { TaskLine } from "../worker/deps.ts";
import type { AnswerApproval } from "./approvals.ts";
import { createFileCatalog, folderOf, type LocalPlaybook } from "./catalog.ts";
import { CAPACITY_DEFAULT, type LocalDeps, runExecution } from "./execution.ts";
import { createFamily } from "./family.ts";
import { createLocalKeychain, type LocalKeychain } from "./keychain.ts";
import { createFileMcpServers } from "./mcp-servers.ts";
import { createLocalResults, type SavedPayload } from "./results.ts";
import type { LocalSignal } from "./waits.ts";

/** What a local runtime is made of. Everything but the tools has a default that suits a real run. */
export interface LocalRuntimeOptions {
  /** Made by the caller, given the store that results go to; closed by it too. */
  tools: (results: WritableResultStore) => { get(kind: string): Promise<Tool> };
  credentials: CredentialSource;
  /** Default: one of this runtime alone. */
  keychain?: LocalKeychain;
  /** Requests tokens and secrets; closed by the caller. Absent: what needs it is an error. */
  secretSource?: SecretSource;
  /**
   * Hosts of MCP servers that get the machine's own token; default all: the person who runs a playbook here is also its caller.
   */
  mcpTokenHosts?: McpKnowledge["tokenHosts"];
  /** Default: a key of this run's own. */
  sealers?: SealerSource;
  env?: JsonObject;
  capacity?: number;
  /** What each execution is sent. Default: nothing. */
  signals?: readonly LocalSignal[];
  /** Who answers approvals. Default: no person. */
  answer?: AnswerApproval;
  clock?: Clock;
  random?: () => number;
  observe?: (state: ExecutionState, events: readonly FlowEvent[]) => void;
  /** Sees each result that is stored apart from the events. */
  saved?: (payload: SavedPayload) => void;
  log?: (line: TaskLine) => void;
}

/** A request to run a playbook here. */
export interface LocalRequest {
  input: JsonObject;
  target?: string;
}

/** Runs playbooks in this process: no server, no database. */
export interface LocalRuntime {
  /** Finds, reads and compiles a playbook. Throws as the file catalog does. */
  load(target: string, folder: string, signal?: AbortSignal): Promise<LocalPlaybook>;
  /** Runs one to its end; aborting the signal cancels it and its children. */
  run(playbook: LocalPlaybook, request: LocalRequest, signal: AbortSignal): Promise<ExecutionState>;
  results: WritableResultStore;
  /** Waits for asynchronous children, then frees the runtime's resources. */
  close(): Promise<void>;
}

/** Builds a local runtime. */
export function createLocalRuntime(options: LocalRuntimeOptions): LocalRuntime {
  const clock = options.clock ?? systemClock;
  const results = createLocalResults(() => clock.now(), options.saved);
  const keychain = options.keychain ?? createLocalKeychain(clock);
  const catalog = createFileCatalog();
  const newId = createIds(() => clock.now());

  const deps: LocalDeps = {
    worker: "local",
    tools: options.tools(results),
    credentials: options.credentials,
    keychain,
    ...(options.secretSource !== undefined && { secretSource: options.secretSource }),
    mcp: { servers: createFileMcpServers(), tokenHosts: options.mcpTokenHosts ?? "all" },
    usesStandIns: true,
    sealers: options.sealers ?? createLocalSealing(),
    children: { run: (request, signal) => family.run(request, signal) },
    results,
    scopes: results,
    clock,
    random: options.random ?? Math.random,
    env: options.env ?? {},
    newId,
    capacity: options.capacity ?? CAPACITY_DEFAULT,
    signals: options.signals ?? [],
    ...(options.answer !== undefined && { answer: options.answer }),
    observe: options.observe ?? (() => undefined),
    log: options.log ?? (() => undefined),
  };

  const execute = (playbook: LocalPlaybook, start: StartRequest, signal: AbortSignal) =>
    runExecution(deps, playbook, start, signal).finally(() => keychain.ended(start.executionId));
  const find = (request: ChildRequest) =>
    catalog.load(request.path ?? request.catalogId ?? "", folderOf(request.parentFile)).catch(sayFirstError);
  const family = createFamily({ execute, find, newId });

  return {
    load: (target, folder, signal) => catalog.load(target, folder, signal),
    run: (playbook, request, signal) => {
      const start = { executionId: newId(), catalogId: playbook.program.playbook.path, ...request };
      return family.runRoot(playbook, start, signal);
    },
    results,
    async close() {
      await family.idle();
      await results.close();
    },
  };
}

/** A task's error is one message: of an invalid document it says the first problem, not only how many there are. */
function sayFirstError(error: unknown): never {
  const [first] = errorsOf(error);
  if (!(error instanceof FlowError) || first === undefined) throw error;
  throw new FlowError(error.code, `${error.message}; the first: ${formatDiagnostic(first)}`, { cause: error });
}

const KEY_BYTES = 32;

/** Sealing for the executions of one process: its key is drawn now and is gone with the process. */
export function createLocalSealing(): SealerSource {
  const sealer = createSealer([{ id: "local", key: randomBytes(KEY_BYTES) }]);
  return { sealerOf: () => Promise.resolve(sealer) };
}
