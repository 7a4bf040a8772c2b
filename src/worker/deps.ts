import type { Program } from "../engine/program/program.ts";
import type { Account } from "../language/expression/parsing/budget.ts";
import type { ChildRunner } from "../ports/children.ts";
import type { Clock } from "../ports/clock.ts";
import type { CredentialSource } from "../ports/credentials.ts";
import type { KeychainStore } from "../ports/keychain.ts";
import type { McpKnowledge } from "../ports/mcp-servers.ts";
import type { ResultStore, WritableResultStore } from "../ports/result-store.ts";
import type { SealerSource } from "../ports/sealing.ts";
import type { SecretSource } from "../ports/secret-source.ts";
import type { FlowEvent } from "../schema/words/event.ts";
import type { JsonObject } from "../schema/words/json.ts";
import type { Tool } from "../tools/contract/tool.ts";
import type { IterationStops } from "./iteration-stops.ts";
import type { Lease } from "./lease.ts";

/** Task runs of one pipeline, retries and jumps included, after which it fails: an endless jump must end. */
export const TASK_RUNS_MAX = 1_000_000;

/** What running a command needs from its surroundings. */
export interface WorkerDeps {
  /** Name of this worker, as it stands in events. */
  worker: string;
  tools: { get(kind: string): Promise<Tool> };
  credentials: CredentialSource;
  /** Where keychain entries are kept; absent: those that would be are errors. */
  keychain?: KeychainStore;
  /** Requests tokens and secrets; absent: what needs it is an error. */
  secretSource?: SecretSource;
  /** The MCP servers that tasks name; absent: they give addresses. */
  mcp?: McpKnowledge;
  /** A credential with a keychain entry's name replaces the request to the secret source: for runs that try a playbook out. */
  usesStandIns?: true;
  /** Seals secrets in what is reported and stored; undefined: values pass as they are, where nothing leaves the process. */
  sealers: SealerSource | undefined;
  /** Whether this worker still owns what it runs; absent: always, because there is no other worker. */
  lease?: Pick<Lease, "held">;
  /** Iterations of the command that are ended by hand while it runs; absent: there is no such thing. */
  stops?: IterationStops;
  children: ChildRunner;
  results: WritableResultStore;
  /** Where `artifact` reads what an author names; absent: where its tool does. */
  stored?: ResultStore;
  clock: Clock;
  /** Task runs of one pipeline after which it fails; default {@link TASK_RUNS_MAX}. */
  taskRunsMax?: number;
  /** A number in [0, 1). */
  random(): number;
  /** The allow-listed environment, readable as `env` in templates. */
  env: JsonObject;
  /** What all templates of a command may use together; absent: each has its own limits. */
  account?: Account;
  /** W3C `traceparent` of a task's run, where runs have spans of their own; default: that of the command. */
  traceparent?(taskRunId: string, run: number): string;
  /** A line that a tool wrote. */
  log(line: TaskLine): void;
}

/** One line of a tool's own output. */
export interface TaskLine {
  executionId: string;
  commandId: string;
  step: string;
  task: string;
  iteration?: number;
  text: string;
}

/** The playbook that a command belongs to, and the document it came from. */
export interface CommandProgram {
  program: Program;
  file: string;
}

/**
 * Takes the events of a command as they happen, in order. Awaited, so that a slow receiver slows the worker and not its
 * memory.
 */
export type Report = (events: FlowEvent[]) => Promise<void>;
