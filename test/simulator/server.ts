import assert from "node:assert/strict";
import { accept } from "../../src/engine/accept.ts";
import { startExecution } from "../../src/engine/start.ts";
import { type ExecutionState, isTerminal, openCommand } from "../../src/engine/state.ts";
import type { Command } from "../../src/schema/command.ts";
import type { FlowEvent } from "../../src/schema/event.ts";
import { openJournal, type ServerParts, type Transaction } from "./journal.ts";

/** How long a claim holds without a heartbeat. */
export const LEASE_MS = 20_000;

/** A row of the command table. It lasts, as the log does, and is written in the same transaction. */
export interface CommandRow {
  command: Command;
  status: "PENDING" | "CLAIMED" | "ENDED";
  attempt: number;
  worker: string | null;
  leaseUntil: number;
}

/** A claimed command, as it goes over the wire. */
export interface Claim {
  command: Command;
  attempt: number;
}

/** What becomes of a report: taken (now or before), to be sent again later, or no longer its sender's business. */
export type Answer = "taken" | "early" | "refused";

/** The authoritative side. Everything that a worker asks is answered with undefined while it is down. */
export interface Server {
  start(): void;
  claim(worker: string): Claim | "nothing" | undefined;
  /** Takes a report once for each key, as the interface specification has it for event batches. */
  report(key: string, events: readonly FlowEvent[]): Answer | undefined;
  /**
   * Whether this claim may still store results: one that was lost must not, since a later claim of the command stores
   * under the same references.
   */
  holds(claim: Claim): boolean;
  /** Renews leases; answers the commands that are not the worker's any more. */
  heartbeat(worker: string, running: readonly Claim[]): string[] | undefined;
  /** An event from outside the workers: a person cancels, the run's time is over. */
  interfere(event: FlowEvent): void;
  jump(ms: number): void;
  readonly log: readonly FlowEvent[];
  readonly rows: ReadonlyMap<string, CommandRow>;
  readonly state: ExecutionState;
}

/** Makes the server of one execution. `announce` is called when there is something to claim. */
export function createServer(parts: ServerParts, announce: () => void): Server {
  const rows = new Map<string, CommandRow>();
  const taken = new Set<string>();
  const journal = openJournal(parts, (events, commands) => {
    for (const command of commands) {
      assert.ok(!rows.has(command.command_id), `Command ${command.command_id} was issued twice`);
      rows.set(command.command_id, { command, status: "PENDING", attempt: 0, worker: null, leaseUntil: 0 });
    }
    for (const event of events) endRow(rows, event);
    assertWithinLimits(journal.state);
    if (commands.length > 0) announce();
  });

  return {
    rows,
    get log() {
      return journal.log;
    },
    get state() {
      return journal.state;
    },
    jump: (ms) => journal.jump(ms),
    start() {
      const env = { now: journal.now(), newId: journal.newId, references: { get: () => undefined }, env: {} };
      const first = startExecution({ executionId: "1", catalogId: "2", input: {} }, parts.program, env);
      journal.transact(({ fold }) => fold(first));
      // It may die over the start too; whoever asked for the run asks again.
      if (journal.log.length === 0) parts.clock.after(1_000, () => this.start());
    },
    claim: (worker) =>
      journal.transact((transaction) => {
        const row = claimable(rows, journal.now());
        return row === undefined ? "nothing" : claimRow(journal.state, row, worker, journal.now(), transaction);
      }),
    report(key, events) {
      if (!journal.isDown && taken.has(key)) return "taken";
      return journal.transact((transaction) => {
        const answer = judge(journal.state, events, transaction);
        if (answer === "taken") transaction.onCommit(() => taken.add(key));
        return answer;
      });
    },
    holds({ command, attempt }) {
      const row = rows.get(command.command_id);
      return row?.status === "CLAIMED" && row.attempt === attempt;
    },
    heartbeat(worker, running) {
      if (journal.isDown) return undefined;
      return running.flatMap(({ command, attempt }) => {
        const row = rows.get(command.command_id);
        const isHeld = row?.status === "CLAIMED" && row.worker === worker && row.attempt === attempt;
        if (isHeld) row.leaseUntil = journal.now() + LEASE_MS;
        return isHeld ? [] : [command.command_id];
      });
    },
    interfere(event) {
      if (isTerminal(journal.state.status)) return;
      const done = journal.transact((transaction) => judge(journal.state, [event], transaction));
      if (done === undefined) parts.clock.after(1_000, () => this.interfere(event));
    },
  };
}

/** What waits for a worker comes first, then what a worker seems to have lost. */
function claimable(rows: ReadonlyMap<string, CommandRow>, now: number): CommandRow | undefined {
  const all = [...rows.values()];
  return (
    all.find(({ status }) => status === "PENDING") ??
    all.find(({ status, leaseUntil }) => status === "CLAIMED" && leaseUntil <= now)
  );
}

function claimRow(
  state: ExecutionState,
  row: CommandRow,
  worker: string,
  now: number,
  transaction: Transaction,
): Claim {
  const { command } = row;
  const attempt = row.attempt + 1;
  const event: FlowEvent = {
    type: "command.claimed",
    at: now,
    command_id: command.command_id,
    step: command.step,
    attempt,
    worker,
  };
  // Invariant 4: attempts only grow, and the engine agrees with the table about them.
  assert.equal(accept(state, event), "accepted", `Claim ${attempt} of command ${command.command_id} is refused`);
  transaction.fold(event);
  transaction.onCommit(() => Object.assign(row, { status: "CLAIMED", attempt, worker, leaseUntil: now + LEASE_MS }));
  return JSON.parse(JSON.stringify({ command, attempt }));
}

/**
 * Takes the events that apply. One that speaks of an iteration that had ended before, in an earlier attempt, is left out;
 * one that is refused, is refused with its whole report.
 */
function judge(state: ExecutionState, events: readonly FlowEvent[], { fold }: Transaction): Answer {
  let folded = 0;
  for (const event of events) {
    const verdict = accept(state, event);
    if (verdict === "accepted") {
      fold(event);
      folded += 1;
    } else if (verdict === "early") {
      assert.equal(folded, 0, "A report is early in its middle: half of it was taken");
      return "early";
    } else if (
      verdict !== "unknown" ||
      !("command_id" in event) ||
      openCommand(state, event.command_id) === undefined
    ) {
      assert.equal(folded, 0, "A report is refused in its middle: half of it was taken");
      return "refused";
    }
  }
  return "taken";
}

function endRow(rows: ReadonlyMap<string, CommandRow>, event: FlowEvent): void {
  if (event.type !== "command.completed" && event.type !== "command.failed" && event.type !== "command.cancelled")
    return;
  const row = rows.get(event.command_id);
  assert.ok(row !== undefined, `Command ${event.command_id} ended and was never issued`);
  // Invariant 3: exactly one end.
  assert.notEqual(row.status, "ENDED", `Command ${event.command_id} ended twice`);
  row.status = "ENDED";
}

/** Invariant 6: no loop has more iterations open than it allows; those of one command are its worker's to keep apart. */
function assertWithinLimits(state: ExecutionState): void {
  for (const name of state.active) {
    const loop = state.steps[name]?.run?.loop;
    if (loop == null) continue;
    const open = Object.values(state.commands).filter(
      ({ step, iterations }) => step === name && iterations !== null && iterations.endedBelow < iterations.to,
    );
    assert.ok(open.length <= loop.maxInFlight, `Step ${name}: ${open.length} open of ${loop.maxInFlight}`);
  }
}
