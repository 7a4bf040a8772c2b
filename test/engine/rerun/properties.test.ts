import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Program } from "../../../src/engine/program/program.ts";
import { resultOf } from "../../../src/engine/state/results.ts";
import type { ExecutionState } from "../../../src/engine/state/state.ts";
import { seededRandom } from "../../simulator/random.ts";
import { compile } from "../support/playbook.ts";
import { workflow } from "../support/workflow.ts";
import { originalOf, type Run, restored, runAll, runOn, type Tool } from "./support.ts";

// Reruns of random workflows. A failure prints the seed; `FLOW_SEED=<seed>` runs with it again.

const RUNS = Number(process.env["FLOW_PROPERTY_RUNS"] ?? 60);
const seed = Number(process.env["FLOW_SEED"] ?? Date.now() % 1_000_000_000);

type Call = Parameters<Tool>[0];

/** The same call has the same end, always. */
const tool: Tool = (call) => {
  let hash = 7;
  for (const char of JSON.stringify(call)) hash = (Math.imul(hash, 31) + char.charCodeAt(0)) >>> 0;
  const random = seededRandom(hash);
  const fails = random.chance(1 / 8);
  return {
    value: { v: random.between(0, 3) },
    fails,
    ...(random.chance(0.3) && { set: [["x", random.between(0, 9)]] }),
  };
};

/** Without branches side by side: these would begin with variables that the others have set meanwhile. */
const alone = workflow.map(({ text }) => text.replaceAll('"mode":"inclusive"', '"mode":"exclusive"'));

/** The same status, result, error and variables, of steps that ran as often and ended the same. */
function endsAlike(again: ExecutionState, before: ExecutionState, from: string): void {
  assert.equal(again.status, before.status, from);
  assert.deepEqual(again.vars, before.vars, from);
  assert.deepEqual(resultOf(again)?.value, resultOf(before)?.value, from);
  assert.equal(again.error?.message, before.error?.message, from);
  const statuses = (state: ExecutionState) =>
    Object.fromEntries(Object.entries(state.steps).map(([step, { status, runs }]) => [step, `${status} ${runs}`]));
  assert.deepEqual(statuses(again), statuses(before), from);
}

test("a rerun from any step of a finished run, with tools that give the same again, comes to what the run came to", (context) => {
  context.diagnostic(`FLOW_SEED=${seed}`);
  const runs = fc.property(alone, (text) => {
    const program = compile(text);
    const run = runAll(program, tool);
    const { marks } = originalOf(run.log);
    for (const [name, { end }] of marks) {
      if (end === "unreached") continue;
      const { first } = restored(run.log, program, [name], { reuseIterations: false });
      const again = runOn(program, first, tool);
      endsAlike(again.state, run.state, name);
    }
  });
  fc.assert(runs, { seed, numRuns: RUNS });
});

function withoutWrites(text: string): string {
  const strip = (key: string, value: unknown) => (key === "set" ? undefined : value);
  const lines = text.split("\n").map((line) => {
    const [, step] = /^ {2}- (.*)$/.exec(line) ?? [];
    return step === undefined ? line : `  - ${JSON.stringify(JSON.parse(step), strip)}`;
  });
  return lines.join("\n");
}

test("so it is with branches side by side and joins, where no step writes what another reads", (context) => {
  context.diagnostic(`FLOW_SEED=${seed}`);
  const quiet = workflow.filter(({ hasBackArcs }) => !hasBackArcs).map(({ text }) => withoutWrites(text));
  const still: Tool = (call) => ({ ...tool({ ...call, vars: {}, input: {} }), set: [] });
  const runs = fc.property(quiet, fc.nat(), (text, order) => {
    const program = compile(text);
    const random = seededRandom(order);
    const pick = (open: number) => random.between(0, open - 1);
    const run = runAll(program, still, {}, { pick });
    if (run.state.status !== "COMPLETED") return;
    for (const [name, { end }] of originalOf(run.log).marks) {
      if (end === "unreached") continue;
      const { first } = restored(run.log, program, [name], { reuseIterations: false });
      const again = runOn(program, first, still, new Map(run.stored), pick);
      // Of several branches the last one that ends gives the result of the whole.
      const ends = (state: ExecutionState) =>
        Object.entries(state.steps).map(([step, one]) => [step, one.status, one.runs, one.result?.value]);
      assert.equal(again.state.status, run.state.status, name);
      assert.deepEqual(ends(again.state).sort(), ends(run.state).sort(), name);
    }
  });
  fc.assert(runs, { seed, numRuns: RUNS });
});

test("a branch that is in an earlier turn where another begins again keeps that turn's end", () => {
  const program = compile(`
workflow:
  - { step: start, set: { ctx.round: 0 }, next: split }
  - { step: split, next: [left, right] }
  - { step: left, next: join }
  - { step: right, next: join }
  - { step: join, next: { arcs: [{ step: split, when: "{{ round < 2 }}", set: { ctx.round: "{{ round + 1 }}" } }] } }
`);
  const fine: Tool = ({ step, vars }) => ({ value: { of: step, round: vars["round"] ?? 0 } });
  for (const pick of [() => 0, (open: number) => open - 1]) {
    const run = runAll(program, fine, {}, { pick });
    for (const name of ["left", "right"]) {
      const again = runOn(program, restored(run.log, program, [name]).first, fine, new Map(run.stored));
      endsAlike(again.state, run.state, name);
      for (const step of ["left", "right", "join"])
        assert.deepEqual(again.state.steps[step]?.result, run.state.steps[step]?.result, `${step} after ${name}`);
    }
  }
});

test("what is kept of an earlier turn names the end of that turn, not of the last one", () => {
  const program = compile(`
workflow:
  - { step: start, set: { ctx.round: 0 }, next: turn }
  - { step: turn, next: work }
  - { step: work, next: { arcs: [{ step: turn, when: "{{ round < 2 }}", set: { ctx.round: "{{ round + 1 }}" } }] } }
`);
  const fine: Tool = ({ step, vars }) => ({ value: { of: step, round: vars["round"] ?? 0 } });
  const run = runAll(program, fine);
  const { first } = restored(run.log, program, ["turn"]);
  const restoring = first.find((event) => event.type === "workflow.restored");
  assert.ok(restoring?.type === "workflow.restored");
  const named = restoring.steps["work"]?.kept?.reused_from?.event_id ?? 0;
  const ends = run.log.flatMap((event, index) =>
    event.type === "step.completed" && event.step === "work" ? [index + 1] : [],
  );
  assert.equal(ends.length, 3);
  assert.equal(named, ends[1]);
});

test("a rerun of the final step alone runs it, and one of others alone does not", () => {
  const program = compile(`
executor: { spec: { final_step: tidy } }
workflow: [{ step: a, next: b }, { step: b }, { step: tidy }]
`);
  const fine: Tool = ({ step }) => ({ value: step });
  const run = runAll(program, fine);
  const only = true;
  for (const step of ["tidy", "b"]) {
    const again = runOn(program, restored(run.log, program, [step], { only }).first, fine);
    assert.deepEqual(again.calls, [step]);
  }
});

test("every rerun ends, of runs that were cut off and with branches side by side too, and calls what it says", (context) => {
  context.diagnostic(`FLOW_SEED=${seed}`);
  const runs = fc.property(workflow, fc.nat(40), fc.nat(), fc.boolean(), ({ text }, stopAfter, order, only) => {
    const program = compile(text);
    const random = seededRandom(order);
    const run = runAll(program, tool, {}, { stopAfter, pick: (open) => random.between(0, open - 1) });
    for (const [name, { end }] of originalOf(run.log).marks) {
      if (end === "unreached") continue;
      const { start, first } = restored(run.log, program, [name], { only });
      const again = runOn(program, first, tool, new Map(run.stored));
      const reused = new Set(start.reused);
      for (const call of again.calls) assert.ok(!reused.has(call.split("[", 1)[0] ?? ""), `${name}: ${call} is reused`);
      if (only) for (const call of again.calls) assert.equal(call.split("[", 1)[0], name);
    }
    if (run.state.status === "COMPLETED") return;
    if (![...originalOf(run.log).marks.values()].some(({ end }) => end === "failed" || end === "stopped")) return;
    const fine: Tool = (call) => ({ ...tool(call), fails: false });
    const again = runOn(program, restored(run.log, program, "failed").first, fine, new Map(run.stored));
    assert.ok(["COMPLETED", "FAILED"].includes(again.state.status));
  });
  fc.assert(runs, { seed, numRuns: RUNS });
});

/** The names of steps and iterations that call, as `reuse_children` has them. */
const callerOf = ({ step, iteration }: Call, program: Program) =>
  program.steps.get(step)?.loop === undefined ? step : `${step}[${iteration}]`;

/** A random workflow of which every second step calls a playbook. */
function withCalls(text: string): string {
  const called = JSON.stringify({ kind: "playbook", path: "called", input: { n: "{{ x | default(0) }}" } });
  return text.replaceAll(/^ {2}- \{"step":"s\d*[13579]"/gm, (name) => `${name},"tool":${called}`);
}

/** Runs what steps call as executions of their own; `taken` has those whose results are taken in place of calls. */
function calling(program: Program, called: Program, taken: ReadonlyMap<string, Run> = new Map()) {
  const children = new Map<string, Run[]>();
  const calls: Tool = (call) => {
    if (!isCall(program, call.step)) return tool(call);
    const caller = callerOf(call, program);
    const run = taken.get(caller) ?? runAll(called, tool, { n: call.vars["x"] ?? 0 });
    if (!taken.has(caller)) children.set(caller, [...(children.get(caller) ?? []), run]);
    return { value: resultOf(run.state)?.value ?? null, fails: run.state.status !== "COMPLETED" };
  };
  return { tool: calls, children };
}

function isCall(program: Program, step: string): boolean {
  return program.steps.get(step)?.tasks.some(({ task }) => task.kind === "playbook") === true;
}

test("where steps call playbooks, those before a step are not called again, and what was called may be taken over", (context) => {
  context.diagnostic(`FLOW_SEED=${seed}`);
  let taken = 0;
  const runs = fc.property(alone, alone, (text, calledText) => {
    const [program, called] = [compile(withCalls(text)), compile(calledText)];
    const first = calling(program, called);
    const run = runAll(program, first.tool);
    for (const [name, { end }] of originalOf(run.log).marks) {
      if (end === "unreached") continue;
      const begun = () => restored(run.log, program, [name], { reuseIterations: false });
      const { start, first: begin } = begun();
      const again = calling(program, called);
      const rerun = runOn(program, begin, again.tool, new Map(run.stored));
      endsAlike(rerun.state, run.state, name);
      const reused = new Set(start.reused);
      for (const caller of again.children.keys()) assert.ok(!reused.has(caller.split("[", 1)[0] ?? ""), caller);
      for (const [caller, children] of again.children) {
        const before = first.children.get(caller) ?? [];
        const last = before.slice(-children.length);
        assert.deepEqual(
          children.map(({ state }) => resultOf(state)),
          last.map(({ state }) => resultOf(state)),
          caller,
        );
      }
      // One that was called in several turns may have had several ends.
      const once = [...first.children].flatMap(([caller, [child, ...more]]) =>
        child?.state.status === "COMPLETED" && more.length === 0 ? [[caller, child] as const] : [],
      );
      const instead = calling(program, called, new Map(once));
      endsAlike(runOn(program, begun().first, instead.tool, new Map(run.stored)).state, run.state, name);
      for (const [caller] of once) assert.equal(instead.children.has(caller), false, `${caller} was called`);
      taken += once.length;
    }
  });
  fc.assert(runs, { seed, numRuns: 2 * RUNS });
  assert.ok(RUNS < 60 || taken > 5, `Only ${taken} calls were taken over`);
});
