import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { advanceOf, continueAdvance } from "../../../src/engine/decide/advance.ts";
import { type PlacedEvent, recallCommand } from "../../../src/engine/decide/issued-command.ts";
import { startExecution } from "../../../src/engine/decide/start.ts";
import type { Program } from "../../../src/engine/program/program.ts";
import { evolve } from "../../../src/engine/state/evolve.ts";
import { emptyState } from "../../../src/engine/state/state.ts";
import type { Command } from "../../../src/schema/words/command.ts";
import type { FlowEvent } from "../../../src/schema/words/event.ts";
import { drive } from "../support/drive.ts";
import { countingEnv } from "../support/given.ts";
import { compile } from "../support/playbook.ts";
import { workflow } from "../support/workflow.ts";

// A command that has ended is made again from the log. A failure prints the seed; `FLOW_SEED=<seed>` runs with it again.

const RUNS = Number(process.env["FLOW_PROPERTY_RUNS"] ?? 300);
const seed = Number(process.env["FLOW_SEED"] ?? Date.now() % 1_000_000_000);

/** The log of a run as it is stored, and its commands as they were issued: JSON texts by id. */
function issuedBy(program: Program, driver: number): { log: PlacedEvent[]; issued: Map<string, string> } {
  const log: PlacedEvent[] = [];
  const issued = new Map<string, string>();
  drive(program, driver, {
    onAdvanced({ events, causes, commands }) {
      const first = log.length;
      for (const [index, event] of events.entries()) {
        const cause = causes[index];
        // What is reported about a command follows from its issue.
        const issue = log.find(
          (one) =>
            "command_id" in event && one.event.type === "command.issued" && one.event.command_id === event.command_id,
        );
        const of = cause === null || cause === undefined ? issue?.eventId : first + cause;
        log.push({ event: JSON.parse(JSON.stringify(event)), eventId: log.length, cause: of });
      }
      for (const command of commands) issued.set(command.command_id, JSON.stringify(command));
    },
  });
  return { log, issued };
}

/** With a task in each step that reads all that there is. */
function reading(text: string): string {
  const tool = JSON.stringify({ kind: "noop", note: "{{ ctx }} {{ result }} {{ x }}" });
  return text.replaceAll('- {"step":', `- {"tool":${tool},"step":`);
}

function recalled(program: Program, log: readonly PlacedEvent[], commandId: string): string {
  const recall = recallCommand(program, commandId);
  for (const placed of log) {
    const command = recall.next(placed);
    if (command !== undefined) return JSON.stringify(command);
  }
  return JSON.stringify(recall.end());
}

function assertRecalled(program: Program, driver: number): number {
  const { log, issued } = issuedBy(program, driver);
  for (const [id, text] of issued) assert.equal(recalled(program, log, id), text);
  return issued.size;
}

test("every command of every run is made again from the log as it was issued, letter for letter", (context) => {
  context.diagnostic(`FLOW_SEED=${seed}`);
  let count = 0;
  const runs = fc.property(workflow, fc.integer({ min: 0 }), ({ text }, driver) => {
    count += assertRecalled(compile(reading(text)), driver);
  });
  fc.assert(runs, { seed, numRuns: RUNS });
  assert.ok(count > RUNS, `${count} commands`);
});

for (const [what, steps] of [
  [
    "in a cycle, with variables that each round writes",
    `  - step: start
    set: { n: "{{ (n | default(0)) + 1 }}", last: "{{ output.data }}" }
    tool: { kind: noop, note: "{{ n }} {{ last }} {{ start.v }}" }
    next: { spec: { mode: exclusive }, arcs: [{ step: start, when: "{{ n < 4 }}" }, { step: other }] }
  - step: other
    tool: { kind: noop, note: "{{ ctx }} {{ result }}" }`,
  ],
  [
    "of branches of which one is skipped and writes a variable meanwhile",
    `  - step: start
    tool: { kind: noop }
    next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: b }, { step: c }] }
  - step: a
    when: "{{ false }}"
    set: { seen: "{{ 1 }}" }
    tool: { kind: noop }
    next: { arcs: [{ step: d }] }
  - step: b
    tool: { kind: noop, note: "{{ vars }} {{ seen }}" }
  - step: c
    loop: { in: "{{ range(5) }}", iterator: x, spec: { mode: parallel, max_in_flight: 2 } }
    tool: { kind: noop, note: "{{ x }} {{ vars }}" }
  - step: d
    tool: { kind: noop, note: "{{ vars }} {{ steps }}" }`,
  ],
  [
    "of loops: in turn, all in one command, and over a number",
    `  - step: start
    loop: { in: [a, b, c], iterator: x }
    tool: { kind: noop, note: "{{ x }} {{ vars }}" }
    set: { last: "{{ output.data }}" }
    next: { arcs: [{ step: one }] }
  - step: one
    loop: { in: { k: 1, l: 2 }, iterator: x, spec: { mode: parallel, policy: { exec: local } } }
    tool: { kind: noop, note: "{{ x }} {{ start }}" }
    next: { arcs: [{ step: number }] }
  - step: number
    loop: { in: 3, iterator: x }
    tool: { kind: noop, note: "{{ x }} {{ one }}" }`,
  ],
] as const) {
  test(`commands are made again ${what}`, () => {
    const program = compile(`workflow:\n${steps}\n`);
    for (let driver = 0; driver < 50; driver += 1) assert.ok(assertRecalled(program, driver) > 0);
  });
}

test("a command is made again as it was decided: after what had been decided meanwhile for events that were accepted together", () => {
  const program = compile(`workflow:
  - step: start
    tool: { kind: noop }
    next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: b }] }
  - step: a
    tool: { kind: noop }
    next: { arcs: [{ step: c }] }
  - step: b
    tool: { kind: noop }
    next: { arcs: [{ step: d }] }
  - step: c
    tool: { kind: noop, note: "{{ seen }}" }
  - step: d
    when: "{{ false }}"
    next: { arcs: [{ step: e, set: { seen: 1 } }] }
  - step: e
    tool: { kind: noop }
`);
  const env = countingEnv();
  const state = emptyState();
  const log: PlacedEvent[] = [];
  const issued: Command[] = [];
  const take = (...events: FlowEvent[]) => {
    for (const event of events) evolve(state, event);
    const progress = advanceOf(events);
    continueAdvance(progress, state, program, env);
    const first = log.length;
    for (const [index, event] of progress.events.entries()) {
      const cause = progress.causes[index];
      log.push({ event, eventId: first + index, cause: cause == null ? undefined : first + cause });
    }
    issued.push(...progress.commands);
  };
  const completed = (step: string): FlowEvent => {
    const id = issued.find((command) => command.step === step)?.command_id ?? "";
    return { type: "command.completed", at: env.now, command_id: id, step, attempt: 0 };
  };
  take(startExecution({ executionId: "1", catalogId: "2", input: {} }, program, env));
  take(completed("start"));
  take(completed("a"), completed("b"));
  const command = issued.find(({ step }) => step === "c");
  assert.deepEqual(command?.context.vars, { seen: 1 });
  for (const one of issued) assert.equal(recalled(program, log, one.command_id), JSON.stringify(one));
});

test("a log that does not issue a command gives none", () => {
  const program = compile("workflow:\n  - step: start\n    tool: { kind: noop }\n");
  const { log } = issuedBy(program, 1);
  const recall = recallCommand(program, "4711");
  for (const placed of log) assert.equal(recall.next(placed), undefined);
  assert.equal(recall.end(), undefined);
  assert.equal(recallCommand(program, "4711").end(), undefined);
});
