import assert from "node:assert/strict";
import { type StartRequest, startExecution } from "../../../src/engine/decide/start.ts";
import type { EngineEnv } from "../../../src/engine/env.ts";
import type { Program } from "../../../src/engine/program/program.ts";
import { type Acceptance, accept } from "../../../src/engine/state/accept.ts";
import { evolve } from "../../../src/engine/state/evolve.ts";
import { type ExecutionState, emptyState, isTerminal } from "../../../src/engine/state/state.ts";
import { toPlainJson } from "../../../src/language/template/template.ts";
import { ResultView } from "../../../src/language/views/result-view.ts";
import type { Command } from "../../../src/schema/words/command.ts";
import type { FlowEvent } from "../../../src/schema/words/event.ts";
import type { Json, JsonObject } from "../../../src/schema/words/json.ts";
import { advance } from "./advance.ts";
import { compile } from "./playbook.ts";
import type { Report } from "./reports.ts";
import { trace } from "./trace.ts";

/** What a test expects of an execution; what is not named is not compared. */
export interface Expected {
  status?: ExecutionState["status"];
  /** Status by step; steps that nothing happened to are PENDING. */
  steps?: Record<string, string>;
  vars?: JsonObject;
  /** Value of the execution's result. */
  result?: Json;
  /** Values of step results. */
  results?: Record<string, Json>;
  /** Message of the execution's error must match. */
  error?: RegExp;
  /** Steps with an open command, in the order of issue. */
  open?: string[];
}

/** An execution under test: reports go in by `when`, what follows is compared by `then` and `is`. */
export interface Given {
  /** Takes reports, each of which must be acceptable. */
  when(...reports: Report[]): Given;
  /** Exactly these events followed since the last `when`, the reports themselves left out (see support/trace.ts). */
  then(...lines: string[]): Given;
  is(expected: Expected): Given;
  /** Each of these reports' last event is refused for that reason. */
  refuses(why: Acceptance, ...reports: Report[]): Given;
  readonly state: ExecutionState;
  readonly log: FlowEvent[];
  /** Every command issued so far. */
  readonly commands: Command[];
  /** Payloads that were stored. */
  readonly stored: Map<string, Json>;
}

/** Starts an execution of a playbook. After each test the log is replayed and must give the same state. */
export function given(text: string, request: Partial<StartRequest> = {}, surroundings: Partial<EngineEnv> = {}): Given {
  const program = compile(text);
  const state = emptyState();
  const stored = new Map<string, Json>();
  const log: FlowEvent[] = [];
  const commands: Command[] = [];
  let followed: FlowEvent[] = [];
  const env = { ...countingEnv(stored), ...surroundings };

  const take = (event: FlowEvent) => {
    const step = advance(state, event, program, env);
    for (const { ref, value } of step.writes) stored.set(ref, value);
    log.push(...step.events);
    commands.push(...step.commands);
    followed.push(...step.events.slice(1));
    assertSound(state, log);
  };

  const run: Given = {
    state,
    log,
    commands,
    stored,
    when(...reports) {
      followed = [];
      for (const report of reports) {
        env.now += 1_000;
        for (const event of report({ state, program, now: env.now })) {
          assert.equal(accept(state, event), "accepted", `A report is refused: ${JSON.stringify(event)}`);
          take(event);
        }
      }
      return run;
    },
    then(...lines) {
      assert.deepEqual(trace(followed), lines);
      return run;
    },
    is(expected) {
      compare(state, program, expected, stored);
      return run;
    },
    refuses(why, ...reports) {
      for (const report of reports) {
        const event = report({ state, program, now: env.now }).at(-1);
        assert.ok(event);
        assert.equal(accept(state, event), why, `A report is not ${why}: ${JSON.stringify(event)}`);
      }
      return run;
    },
  };
  const start = { executionId: "1", catalogId: "2", input: {}, ...request };
  take(startExecution(start, program, env));
  return run;
}

/** Ids and times that count up, so that every run of a test is the same. */
export function countingEnv(stored: ReadonlyMap<string, Json> = new Map()): EngineEnv {
  let ids = 100;
  const newId = () => {
    ids += 1;
    return String(ids);
  };
  return { now: 1_000_000, newId, references: { get: (ref) => stored.get(ref) }, env: {} };
}

/** What holds after every event: replay equals live, and exactly one event ended what has ended. */
function assertSound(state: ExecutionState, log: readonly FlowEvent[]): void {
  const replayed = log.reduce(evolve, emptyState());
  assert.deepEqual(replayed, state, "The state differs from the fold of the log");
  const ends = log.filter(({ type }) => ENDS.has(type));
  assert.equal(ends.length, isTerminal(state.status) ? 1 : 0, `Ended ${ends.length} times: ${trace(log).join("; ")}`);
  if (isTerminal(state.status)) {
    assert.deepEqual(state.commands, {}, "A command is open after the end");
    assert.deepEqual(state.active, [], "A step runs after the end");
    assert.deepEqual(state.waiting, [], "A step waits after the end");
  }
}

const ENDS: ReadonlySet<string> = new Set(["playbook.completed", "playbook.failed", "execution.cancelled"]);

function compare(state: ExecutionState, program: Program, expected: Expected, stored: ReadonlyMap<string, Json>): void {
  const value = (step: string | null): Json => {
    const result = step === null ? null : (state.steps[step]?.result ?? null);
    return result === null ? null : toPlainJson(new ResultView(result, { get: (ref) => stored.get(ref) }));
  };
  if (expected.status !== undefined) assert.equal(state.status, expected.status);
  if (expected.steps !== undefined) {
    const names = Object.keys(expected.steps);
    for (const name of names) assert.ok(program.steps.has(name), `The test expects an unknown step '${name}'`);
    const statuses = names.map((name) => [name, state.steps[name]?.status ?? "PENDING"]);
    assert.deepEqual(Object.fromEntries(statuses), expected.steps);
  }
  if (expected.vars !== undefined) assert.deepEqual(state.vars, expected.vars);
  if (expected.result !== undefined) assert.deepEqual(value(state.resultStep), expected.result);
  for (const [name, result] of Object.entries(expected.results ?? {})) assert.deepEqual(value(name), result);
  if (expected.error !== undefined) assert.match(state.error?.message ?? "no error", expected.error);
  if (expected.open !== undefined) {
    assert.deepEqual(
      Object.values(state.commands).map(({ step }) => step),
      expected.open,
    );
  }
}
