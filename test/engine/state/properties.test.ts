import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { decide } from "../../../src/engine/decide/decide.ts";
import type { EngineEnv } from "../../../src/engine/env.ts";
import type { Program } from "../../../src/engine/program/program.ts";
import { accept } from "../../../src/engine/state/accept.ts";
import { evolve } from "../../../src/engine/state/evolve.ts";
import { type ExecutionState, emptyState } from "../../../src/engine/state/state.ts";
import type { FlowEvent } from "../../../src/schema/words/event.ts";
import { drive } from "../support/drive.ts";
import { compile } from "../support/playbook.ts";
import { trace } from "../support/trace.ts";
import { workflow } from "../support/workflow.ts";

// Random workflows under random workers. A failure prints the seed; `FLOW_SEED=<seed>` runs with it again.

const RUNS = Number(process.env["FLOW_PROPERTY_RUNS"] ?? 300);
const seed = Number(process.env["FLOW_SEED"] ?? Date.now() % 1_000_000_000);

/** Checks a property of every run of every workflow. */
function property(name: string, check: (program: Program, driver: number, hasBackArcs: boolean) => void): void {
  test(name, (context) => {
    context.diagnostic(`FLOW_SEED=${seed}`);
    const runs = fc.property(workflow, fc.integer({ min: 0 }), ({ text, hasBackArcs }, driver) =>
      check(compile(text), driver, hasBackArcs),
    );
    fc.assert(runs, { seed, numRuns: RUNS });
  });
}

const ENDS: ReadonlySet<string> = new Set(["playbook.completed", "playbook.failed", "execution.cancelled"]);

property("every run reaches exactly one terminal state and leaves nothing open", (program, driver) => {
  const { state, log } = drive(program, driver);
  const ends = log.filter(({ type }) => ENDS.has(type));
  assert.equal(ends.length, 1, trace(log).join("\n"));
  assert.deepEqual([state.commands, state.active, state.waiting], [{}, [], []]);
  for (const [name, step] of Object.entries(state.steps)) {
    assert.notEqual(step.status, "RUNNING", `Step ${name} runs after the end`);
    assert.equal(step.token, null, `Step ${name} waits after the end`);
  }
});

property("every command, iteration and step run ends once", (program, driver) => {
  const { log } = drive(program, driver);
  const issued = log.flatMap((event) => (event.type === "command.issued" ? [event.command_id] : []));
  const ended = log.flatMap((event) =>
    event.type === "command.completed" || event.type === "command.failed" || event.type === "command.cancelled"
      ? [event.command_id]
      : [],
  );
  assert.deepEqual([...ended].sort(), [...issued].sort());
  const runs = log.flatMap((event) =>
    event.type === "step.completed" || event.type === "step.failed" ? [event.step_run_id] : [],
  );
  assert.equal(new Set(runs).size, runs.length);
});

property("replaying the log gives the state that the live run had", (program, driver) => {
  const { state, log } = drive(program, driver);
  const stored: FlowEvent[] = JSON.parse(JSON.stringify(log));
  assert.deepEqual(stored.reduce(evolve, emptyState()), state);
});

property("a state that went through JSON goes on the same", (program, driver) => {
  let moves = 0;
  const replace = (state: ExecutionState): ExecutionState => {
    moves += 1;
    return moves % 3 === 0 ? JSON.parse(JSON.stringify(state)) : state;
  };
  const through = drive(program, driver, { replace });
  const plain = drive(program, driver);
  assert.deepEqual(through.log, plain.log);
  assert.deepEqual(through.state, plain.state);
});

property("decide is deterministic and changes nothing", (program, driver) => {
  drive(program, driver, {
    onFold(state, event, env) {
      const before = JSON.stringify(state);
      const once = decide(state, event, program, sameIds(env));
      const twice = decide(state, event, program, sameIds(env));
      assert.deepEqual(once, twice);
      assert.equal(JSON.stringify(state), before, `decide changed the state at ${event.type}`);
    },
  });
});

/** The environment with ids of its own, so that a trial decision takes none away from the run. */
function sameIds(env: EngineEnv): EngineEnv {
  let ids = 0;
  const newId = () => {
    ids += 1;
    return `trial-${ids}`;
  };
  return { ...env, newId };
}

property("no loop has more iterations open than it allows", (program, driver) => {
  drive(program, driver, {
    onSettled(state) {
      for (const name of state.active) {
        const loop = state.steps[name]?.run?.loop;
        if (loop == null || program.steps.get(name)?.loop?.loop.exec === "local") continue;
        assert.ok(loop.open <= loop.maxInFlight, `Step ${name} has ${loop.open} open of ${loop.maxInFlight}`);
        assert.ok(loop.open >= 0);
      }
    },
  });
});

property("an event that was taken once changes nothing when it comes again", (program, driver) => {
  drive(program, driver, {
    onSettled(state, log) {
      const before = JSON.stringify(state);
      for (const event of log.slice(-12)) {
        if (!("attempt" in event) || accept(state, event) !== "accepted") continue;
        evolve(state, event);
        assert.equal(JSON.stringify(state), before, `A second ${event.type} changed the state`);
      }
    },
  });
});

property("without arcs that lead back no step runs twice", (program, driver, hasBackArcs) => {
  if (hasBackArcs) return;
  const { state } = drive(program, driver);
  for (const [name, step] of Object.entries(state.steps))
    assert.ok(step.runs <= 1, `Step ${name} ran ${step.runs} times`);
});

property("a step starts over a forward arc only when nothing that leads to it runs", (program, driver, hasBackArcs) => {
  if (hasBackArcs) return;
  const { log } = drive(program, driver);
  const running = new Set<string>();
  for (const event of log) {
    if (event.type === "step.completed" || event.type === "step.failed" || event.type === "step.skipped") {
      running.delete(event.step);
    }
    const isStart =
      event.type === "loop.started" || (event.type === "command.issued" && event.iterations === undefined);
    if (!isStart) continue;
    const index = program.steps.get(event.step)?.index ?? -1;
    for (const other of running) {
      const from = program.steps.get(other)?.index ?? -1;
      assert.ok(
        !program.graph.reaches(from, index),
        `Step ${event.step} started while ${other} ran, which leads to it`,
      );
    }
    running.add(event.step);
  }
});

property("a step that was skipped as unreached does not run afterwards", (program, driver) => {
  const { log } = drive(program, driver);
  const skipped = new Set<string>();
  for (const event of log) {
    if (event.type === "step.skipped" && event.reason === "unreached") skipped.add(event.step);
    if (event.type === "command.issued")
      assert.ok(!skipped.has(event.step), `Step ${event.step} ran after it was skipped`);
  }
});
