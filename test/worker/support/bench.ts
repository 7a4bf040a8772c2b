import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import { compileProgram } from "../../../src/engine/program/program.ts";
import { createSecrets, openSealed } from "../../../src/engine/sealing/secrets.ts";
import { type ExecutionState, knownStep } from "../../../src/engine/state/state.ts";
import { loadPlaybook } from "../../../src/language/load/load.ts";
import { loadedReferences } from "../../../src/language/template/loaded-references.ts";
import { toPlainJson } from "../../../src/language/template/template.ts";
import { ResultView } from "../../../src/language/views/result-view.ts";
import type { LocalPlaybook } from "../../../src/local/catalog.ts";
import { createLocalKeychain, type LocalKeychain } from "../../../src/local/keychain.ts";
import {
  createLocalRuntime,
  createLocalSealing,
  type LocalRequest,
  type LocalRuntime,
} from "../../../src/local/runtime.ts";
import type { CredentialSource, StoredCredential } from "../../../src/ports/credentials.ts";
import type { SealerSource } from "../../../src/ports/sealing.ts";
import type { SecretSource } from "../../../src/ports/secret-source.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import type { EventOf, EventType, FlowEvent } from "../../../src/schema/words/event.ts";
import type { Json, JsonObject } from "../../../src/schema/words/json.ts";
import { createSteppedClock, type SteppedClock } from "../../../src/testing/stepped-clock.ts";
import type { TaskLine } from "../../../src/worker/deps.ts";
import { assertRecorded } from "./recorded.ts";
import { type Call, type Scripts, scriptedTools } from "./scripted-tools.ts";

/** What a bench is made of; everything has a default. */
export interface BenchOptions {
  tools?: Scripts;
  credentials?: Record<string, Omit<StoredCredential, "name">> | CredentialSource;
  env?: JsonObject;
  /** Makes requests for tokens and secrets; none is made without. */
  secretSource?: SecretSource;
  /** Time-out of every scripted kind. */
  defaultTimeoutMs?: number;
  /** Called for every call of a scripted tool, before it answers. */
  onCall?: (call: Call) => void;
  /** Documents beside the playbook, by file name; the head of a document is put before each. */
  files?: Record<string, string>;
  capacity?: number;
  random?: () => number;
  /** Called for every event, with the state after it. */
  observe?: (event: FlowEvent, state: ExecutionState) => void;
  /** Milliseconds that work has taken, of which too many in a row make it give way. Default: it takes none. */
  busy?: () => number;
  /** Keep no events: for runs so long that keeping them is what takes the memory. */
  forgetful?: true;
}

/** How one run ended. */
export interface Ran {
  state: ExecutionState;
  /** All events of this execution, children excluded. */
  events: FlowEvent[];
  /** The events of one type. */
  of<T extends EventType>(type: T): EventOf<T>[];
  /** A step's result as plain JSON, wherever it is stored, as the next step would see it: what is sealed in it is opened. */
  step(name: string): Promise<Json>;
  /** The execution's result as plain JSON. */
  result(): Promise<Json>;
}

/** A local runtime with scripted tools and a clock that jumps over every sleep. */
export interface Bench {
  clock: SteppedClock;
  /** Where keychain entries are kept. */
  keychain: LocalKeychain;
  /** Every call of a tool but `noop`, in order. */
  calls: Call[];
  lines: TaskLine[];
  runtime: LocalRuntime;
  /** Folder of {@link BenchOptions.files}, in which the playbook stands as `main.yaml`. */
  folder: string;
  /** Makes stored results unreadable from here on. */
  lose(isLost: (ref: string) => boolean): void;
  compile(text: string): LocalPlaybook;
  run(text: string, request?: Partial<LocalRequest> & { signal?: AbortSignal }): Promise<Ran>;
  /** Runs to a status; fails with the run's error when it ends otherwise. */
  completed(text: string, input?: JsonObject): Promise<Ran>;
  failed(text: string, input?: JsonObject): Promise<Ran>;
  /** The executions so far, children too, in the order of their start. */
  executions(): Ran[];
}

const HEAD = "apiVersion: flow/v2\nkind: Playbook\n";

/** Sets up a bench of its own for one test. */
export function setup(t: TestContext, options: BenchOptions = {}): Bench {
  const folder = mkdtempSync(join(tmpdir(), "flow-worker-test-"));
  for (const [name, text] of Object.entries(options.files ?? {})) {
    const file = join(folder, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, withHead(text));
  }
  // 2026-01-01, so that ids are as long as those of a real run.
  const clock = createSteppedClock(1_767_225_600_000, options.busy);
  const calls: Call[] = [];
  const lines: TaskLine[] = [];
  const logs = new Map<string, { state: ExecutionState; events: FlowEvent[] }>();
  let isLost = (_ref: string) => false;
  const keychain = createLocalKeychain(clock);
  const sealers = createLocalSealing();
  const runtime = createLocalRuntime({
    sealers,
    keychain,
    ...(options.secretSource !== undefined && { secretSource: options.secretSource }),
    tools: (results) => {
      const load = results.load;
      results.load = (ref) =>
        isLost(ref)
          ? Promise.reject(
              new FlowError("REFERENCE_NOT_AVAILABLE", `The result ${ref} is not available: lost by the test`),
            )
          : load(ref);
      const onCall = (call: Call) => {
        calls.push(call);
        options.onCall?.(call);
      };
      return scriptedTools(options.tools ?? {}, onCall, options.defaultTimeoutMs);
    },
    credentials: credentialSource(options.credentials),
    clock,
    log: (line) => lines.push(line),
    observe(state, events) {
      const log = logs.get(state.executionId) ?? { state, events: [] };
      logs.set(state.executionId, log);
      if (options.forgetful === undefined) log.events.push(...structuredClone([...events]));
      for (const event of events) options.observe?.(event, state);
    },
    ...(options.env !== undefined && { env: options.env }),
    ...(options.capacity !== undefined && { capacity: options.capacity }),
    ...(options.random !== undefined && { random: options.random }),
  });
  t.after(async () => {
    await clock.runUntil(runtime.close());
    rmSync(folder, { recursive: true });
  });

  const ranOf = (state: ExecutionState): Ran => ran(runtime, sealers, state, logs.get(state.executionId)?.events ?? []);
  const compile = (text: string) => compilePlaybook(text, join(folder, "main.yaml"));
  const run: Bench["run"] = async (text, request = {}) => {
    const { signal, ...rest } = request;
    const work = runtime.run(compile(text), { input: {}, ...rest }, signal ?? new AbortController().signal);
    const state = await clock.runUntil(work);
    if (options.forgetful === undefined) for (const log of logs.values()) assertRecorded(log.state, log.events);
    return ranOf(state);
  };
  const ending = async (status: string, text: string, input: JsonObject = {}) => {
    const ended = await run(text, { input });
    assert.equal(ended.state.status, status, `The run's error: ${JSON.stringify(ended.state.error)}`);
    return ended;
  };
  return {
    clock,
    keychain,
    calls,
    lines,
    runtime,
    folder,
    lose(lost) {
      isLost = lost;
    },
    compile,
    run,
    completed: (text, input) => ending("COMPLETED", text, input),
    failed: (text, input) => ending("FAILED", text, input),
    executions: () => [...logs.values()].map(({ state }) => ranOf(state)),
  };
}

function ran(runtime: LocalRuntime, sealers: SealerSource, state: ExecutionState, events: FlowEvent[]): Ran {
  const step = async (name: string): Promise<Json> => {
    const stored = knownStep(state, name)?.result;
    assert.ok(stored, `Step '${name}' has no result: ${JSON.stringify(knownStep(state, name)?.error)}`);
    const sealer = await sealers.sealerOf({ executionId: state.executionId, rootExecutionId: state.executionId });
    const open = (value: Json) => openSealed(value, sealer, createSecrets());
    const references = loadedReferences({ load: async (ref) => open(await runtime.results.load(ref)) });
    return open(await references.evaluate(() => toPlainJson(new ResultView(stored, references))));
  };
  return {
    state,
    events,
    of: <T extends EventType>(type: T) =>
      events.filter((event): event is EventOf<T> & FlowEvent => event.type === type),
    step,
    result: async () => (state.resultStep === null ? null : await step(state.resultStep)),
  };
}

function compilePlaybook(text: string, file: string): LocalPlaybook {
  const { playbook, diagnostics } = loadPlaybook(withHead(text), file);
  assert.ok(playbook, `The playbook of this test is invalid: ${JSON.stringify(diagnostics, null, 2)}\n${text}`);
  return { program: compileProgram(playbook), file, warnings: diagnostics };
}

function withHead(text: string): string {
  if (text.startsWith("apiVersion")) return text;
  const name = /^metadata:/m.test(text) ? "" : "metadata: { name: test }\n";
  return HEAD + name + text.trimStart();
}

function credentialSource(given: BenchOptions["credentials"] = {}): CredentialSource {
  if (typeof given["find"] === "function") return given as CredentialSource;
  const known = given as Record<string, Omit<StoredCredential, "name">>;
  return {
    find: (name) => {
      const found = known[name];
      return Promise.resolve(found === undefined ? undefined : { name, ...found });
    },
  };
}
