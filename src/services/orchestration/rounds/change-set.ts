import { hasWork, requiredKinds } from "../../../engine/program/program.ts";
import { isUnclaimed } from "../../../engine/state/evolve-wait.ts";
import { type ExecutionState, isTerminal, openCommand, progressOf } from "../../../engine/state/state.ts";
import type {
  CommandChange,
  CommandStatus,
  ExecutionChange,
  ExecutionStart,
  IssuedCommand,
  StoppedIteration,
} from "../../../ports/execution-store.ts";
import type { LogEntry, Marker } from "../../../schema/rules/event-record.ts";
import { labelsOf } from "../../../schema/rules/pool-label.ts";
import type { Command } from "../../../schema/words/command.ts";
import type { EventOf, FlowEvent } from "../../../schema/words/event.ts";
import type { Json } from "../../../schema/words/json.ts";
import {
  claimedOnce,
  endTally,
  type LiveExecution,
  noteEvent,
  SNAPSHOT_EVENTS,
  SNAPSHOT_FORMAT,
  snapshotText,
} from "../memory/load-execution.ts";
import type { Ending } from "../memory/subscriptions.ts";
import type { CancelledCommand, EndedStep } from "./types.ts";
import {
  type ApprovalRows,
  createWaitRows,
  noteApproval,
  type WaitingWork,
  type WaitRows,
  whilePaused,
} from "./wait-rows.ts";

/** When a batch arrived, and whether one of its commands was claimed. */
export interface BatchTrace {
  /** Milliseconds. */
  arrivedAt: number;
  isClaimed: boolean;
}

/** The changes of one execution that one round will write. */
export interface ChangeSet {
  readonly live: LiveExecution;
  /** The batch that was handled last. */
  batch: BatchTrace | undefined;
  /** Steps that ended. */
  readonly steps: EndedStep[];
  /** Commands that were cancelled while a worker held them. */
  readonly cancelled: CancelledCommand[];
  /**
   * Adds an event, which the state already contains; returns its id. For events decided by the engine, `cause` is the event
   * they follow from; for events reported about a command, the cause is the issue of that command.
   */
  event(event: FlowEvent, cause?: number): number;
  /** Adds a record that is not part of the state, such as a batch's marker. */
  marker(marker: Marker): number;
  /** Adds a command that `command.issued` announced. */
  issue(command: Command): void;
  /** Number of events so far, and the id of one of them. */
  count(): number;
  idAt(index: number): number;
  /**
   * Adds a command that an earlier round has issued, and held: it is offered to workers like those that this round issues, unless it
   * is run or held again.
   */
  adopt(command: IssuedCommand): void;
  /** {@link ChangeSet.adopt} of a command that waited for a resumption, or was parked and is woken: `command` as it was issued. */
  takeUp(command: Command): void;
  /** Offers these commands to no worker: this server goes on with them in its next round. */
  hold(commands: readonly IssuedCommand[]): void;
  held(): readonly IssuedCommand[];
  /** Commands that were woken, and neither taken up nor ended since. */
  woken(): readonly string[];
  /** Commands that this round issued or adopted, and that are neither claimed nor held: to be offered after the commit. */
  unclaimed(): IssuedCommand[];
  /** When something may first be done for what it parks, milliseconds since 1970; undefined: it parks nothing. */
  soonest(): number | undefined;
  /** The execution ended in this round. */
  hasEnded(): boolean;
  /** Everything as one change. `resultOf` returns the final result as shown to people. */
  change(resultOf: (state: ExecutionState) => Json): ExecutionChange;
  /** The end as `change` has put it, if the execution ended in this round. */
  ending(): Ending | undefined;
}

/** What a change set is made with. */
interface ChangeSetDeps {
  newId(): number;
  leaseMs: number;
  /** The pool that runs the playbook of a path. */
  poolOf(path: string): string | undefined;
  start?: ExecutionStart;
}

/** Opens a change set. `start` is given only if the execution begins with it. */
export function createChangeSet(live: LiveExecution, deps: ChangeSetDeps): ChangeSet {
  const expectedEventId = deps.start === undefined ? live.lastEventId : null;
  const events: LogEntry[] = [];
  live.claimedOnce ??= claimedOnce(live.state);
  const commands = createCommandChanges(live.claimedOnce);
  let approvals: ApprovalRows | undefined;
  const wasTerminal = isTerminal(live.state.status);
  const { executionId } = live.state;

  const push = (entry: LogEntry) => {
    events.push(entry);
    live.lastEventId = entry.eventId;
    return entry.eventId;
  };
  const steps: ChangeSet["steps"] = [];
  const cancelled: CancelledCommand[] = [];
  const hasEnded = () => isTerminal(live.state.status) && !wasTerminal;
  let ending: Ending | undefined;
  return {
    live,
    batch: undefined,
    ...{ steps, cancelled },
    event(event, cause) {
      project(event, commands, live.state, deps.leaseMs);
      if ("approval_id" in event) approvals = noteApproval(event, live.state, approvals);
      steps.push(...endedSteps(executionId, event));
      cancelled.push(...stoppedWork(event, commands, live.state));
      live.eventsSinceSnapshot += 1;
      const entry = entryOf(live, event, deps.newId(), cause);
      noteEvent(live, event, entry.eventId);
      return push(entry);
    },
    marker({ type, at, context }) {
      return push({ eventId: deps.newId(), event: { type, at, context } });
    },
    issue: (command) => commands.issue(issuedCommand(live, command, deps.poolOf(live.state.path))),
    adopt: commands.adopt,
    takeUp: (command) => commands.adopt(takenUp(live, command, deps.poolOf(live.state.path))),
    hold: commands.hold,
    ...{ held: commands.held, woken: commands.allWoken, soonest: commands.soonest },
    ...{ unclaimed: commands.unclaimed, hasEnded, ending: () => ending },
    count: () => events.length,
    idAt: (index) => events[index]?.eventId ?? 0,
    change(resultOf) {
      const { state } = live;
      const change: ExecutionChange = {
        ...{ executionId, catalogId: live.catalogId, path: state.path },
        expectedEventId,
        lastEventId: live.lastEventId,
        ...(deps.start !== undefined && { start: deps.start }),
        status: state.status,
        progress: progressOf(state, live.source.program.playbook.steps.length),
        events,
        ...(live.attached.size > 0 && { payloads: [...live.attached.values()] }),
        ...commands.rows(),
        ...(hasEnded() && { tally: endTally(live.tally, state, (step) => hasWork(live.source.program, step)) }),
        ...approvals?.rows(),
      };
      if (hasEnded() && state.status === "COMPLETED") change.result = resultOf(state);
      if (hasEnded() && state.error !== null) change.error = state.error;
      const { result = null, error = null } = change;
      if (hasEnded()) ending = { path: state.path, status: state.status, result, error };
      if (live.eventsSinceSnapshot >= SNAPSHOT_EVENTS) {
        change.snapshot = { eventId: live.lastEventId, format: SNAPSHOT_FORMAT, state: snapshotText(live) };
        live.eventsSinceSnapshot = 0;
      }
      return change;
    },
  };
}

/** None for one that is taken over from another execution: it did not run here. */
function endedSteps(executionId: string, event: FlowEvent): EndedStep[] {
  if ((event.type !== "step.completed" && event.type !== "step.failed") || event.kept !== undefined) return [];
  const status = event.type === "step.completed" ? "COMPLETED" : "FAILED";
  return [{ executionId, step: event.step, status, durationMs: event.duration_ms }];
}

const ENDS: ReadonlySet<CommandStatus> = new Set(["COMPLETED", "FAILED", "CANCELLED"]);

/**
 * The rows of an execution's commands that a round adds, changes or removes. The table holds open commands: one that has ended is in
 * the log. Its row stays only where a worker may still run it and has to be told: it was cancelled in a worker's hands, or
 * claimed more than once. So a missing row means that the command's only claim has reported its end.
 */
function createCommandChanges(claimedOnce: Set<string>) {
  const issued = new Map<string, IssuedCommand>();
  const changed = new Map<string, CommandChange>();
  const cancelledHeld = new Set<string>();
  const adopted = new Map<string, IssuedCommand>();
  const stopped: StoppedIteration[] = [];
  let waits: WaitRows | undefined;
  const woken = new Set<string>();
  let held: ReadonlySet<IssuedCommand> = new Set();
  const hasRow = ({ commandId, status, attempt }: CommandChange) =>
    !ENDS.has(status) || (attempt > 1 && !claimedOnce.has(commandId)) || cancelledHeld.has(commandId);
  const isKept = (id: string) => {
    const row = issued.get(id) ?? changed.get(id);
    return row !== undefined && hasRow(row);
  };
  return {
    rows: () => ({
      issued: [...issued.values()].filter(hasRow),
      commands: [...changed.values()].filter(hasRow),
      ended: [...changed.values()].filter((change) => !hasRow(change)).map(({ commandId }) => commandId),
      ...waits?.rows(),
      ...stoppedRows(stopped, isKept),
    }),
    stopped: (iteration: StoppedIteration) => void stopped.push(iteration),
    parked(id: string, work: WaitingWork | null) {
      waits ??= createWaitRows();
      waits.set(id, work);
    },
    soonest: () => waits?.soonest(),
    /** Whether all its earlier claims have ended when it was parked. */
    claimedOnce: (id: string, isSo: boolean) => void (isSo ? claimedOnce.add(id) : claimedOnce.delete(id)),
    cancelled(id: string, isHeld: boolean) {
      if (isHeld) cancelledHeld.add(id);
      this.set(id, "CANCELLED", {});
    },
    /** In the order in which they were issued. */
    unclaimed: () =>
      [...adopted.values(), ...issued.values()].filter((command) => command.status === "PENDING" && !held.has(command)),
    held: () => [...held],
    hold(commands: readonly IssuedCommand[]) {
      held = new Set(commands);
    },
    allWoken: () => [...woken],
    woken(id: string) {
      this.set(id, "PENDING", {});
      this.parked(id, null);
      // One of this round is offered with all that it has issued.
      if (!issued.has(id)) woken.add(id);
    },
    adopt(command: IssuedCommand) {
      woken.delete(command.commandId);
      if (!issued.has(command.commandId)) adopted.set(command.commandId, command);
    },
    issue(command: IssuedCommand) {
      issued.set(command.commandId, { ...command, ...changed.get(command.commandId) });
      changed.delete(command.commandId);
    },
    set(id: string, status: CommandStatus, more: Partial<CommandChange>) {
      adopted.delete(id);
      woken.delete(id);
      const fresh = issued.get(id);
      const change = changeOf({ commandId: id, status, ...more }, fresh ?? changed.get(id));
      if (fresh !== undefined) Object.assign(fresh, change);
      else changed.set(id, change);
    },
  };
}

/** What it does not say stays as `known` has it; a command that no worker holds has no lease. */
function changeOf(
  change: Pick<CommandChange, "commandId" | "status"> & Partial<CommandChange>,
  known: CommandChange | undefined,
): CommandChange {
  const whole = { attempt: known?.attempt ?? 0, worker: null, leaseMs: known?.leaseMs ?? null, ...change };
  return whole.worker === null ? { ...whole, leaseMs: null } : whole;
}

/** None for a command that has ended in the same round: no worker has it any more. */
function stoppedRows(
  all: readonly StoppedIteration[],
  hasRow: (commandId: string) => boolean,
): Pick<ExecutionChange, "stopped"> {
  const stopped = all.filter(({ commandId }) => hasRow(commandId));
  return stopped.length > 0 ? { stopped } : {};
}

type CommandChanges = ReturnType<typeof createCommandChanges>;

/** The event's place in the log, with the event that caused it. */
function entryOf(live: LiveExecution, event: FlowEvent, eventId: number, cause: number | undefined): LogEntry {
  return {
    eventId,
    event,
    parentEventId: cause ?? ("command_id" in event ? live.issued.get(event.command_id) : undefined),
    parentExecutionId: "step" in event ? undefined : live.state.parent?.execution_id,
  };
}

/** The row of a new command. */
function issuedCommand(
  { source: { program }, catalogId }: LiveExecution,
  command: Command,
  pool: string | undefined,
): IssuedCommand {
  return {
    commandId: command.command_id,
    status: "PENDING",
    attempt: 0,
    worker: null,
    leaseMs: null,
    catalogId,
    step: command.step,
    kinds: requiredKinds(program, command.step, command.claim !== undefined),
    labels: labelsOf(program.steps.get(command.step)?.step.labels, pool),
    body: command,
  };
}

/** The row of a command that waited. */
function takenUp(live: LiveExecution, command: Command, pool: string | undefined): IssuedCommand {
  const { attempt = 0 } = openCommand(live.state, command.command_id) ?? {};
  return { ...issuedCommand(live, command, pool), attempt };
}

/** The commands of which workers have to stop something. */
function stoppedWork(
  event: FlowEvent,
  commands: Pick<CommandChanges, "set" | "stopped">,
  state: ExecutionState,
): CancelledCommand[] {
  if (event.type === "step.overridden") return stopIterations(event, commands, state);
  if (event.type !== "command.cancelled" || event.worker === undefined) return [];
  return [{ commandId: event.command_id, worker: event.worker }];
}

/** What workers have of a loop of which a person has ended an iteration: its command goes on without it. */
function stopIterations(
  { step, iteration }: EventOf<"step.overridden">,
  commands: Pick<CommandChanges, "set" | "stopped">,
  state: ExecutionState,
): CancelledCommand[] {
  if (iteration === undefined) return [];
  return Object.entries(state.commands).flatMap(([commandId, command]) => {
    const { worker, attempt, running } = command;
    const isOf = command.step === step && command.iterations?.overridden?.includes(iteration) === true;
    if (!isOf || worker === null || command.parked !== undefined) return [];
    commands.set(commandId, running === true ? "RUNNING" : "CLAIMED", { attempt, worker });
    commands.stopped({ commandId, iteration });
    return [{ commandId, worker }];
  });
}

/** The effect of an event on the row of its command. */
function project(
  event: FlowEvent,
  commands: Pick<CommandChanges, "set" | "cancelled" | "parked" | "woken" | "claimedOnce">,
  state: ExecutionState,
  leaseMs: number,
): void {
  switch (event.type) {
    case "command.claimed":
      commands.set(event.command_id, "CLAIMED", { attempt: event.attempt, worker: event.worker ?? "", leaseMs });
      commands.claimedOnce(event.command_id, openCommand(state, event.command_id)?.parks === event.attempt - 1);
      return;
    case "command.started": {
      const worker = event.worker ?? openCommand(state, event.command_id)?.worker ?? null;
      if (worker !== null) commands.set(event.command_id, "RUNNING", { attempt: event.attempt, worker });
      return;
    }
    case "command.parked":
      commands.set(event.command_id, "PARKED", { attempt: event.attempt });
      commands.parked(event.command_id, state.status === "PAUSED" ? whilePaused(event) : event);
      return;
    case "command.woken":
      commands.woken(event.command_id);
      return;
    case "approval.opened":
    case "approval.reminded":
    case "approval.escalated":
      commands.parked(event.command_id, openCommand(state, event.command_id)?.parked ?? null);
      return;
    case "command.completed":
      commands.set(event.command_id, "COMPLETED", { attempt: event.attempt });
      return;
    case "command.failed":
      // Without a worker, the server failed it as lost: a worker that comes back must be told that the claim is not its own.
      commands.set(event.command_id, "FAILED", {
        attempt: event.worker === undefined ? event.attempt + 1 : event.attempt,
      });
      return;
    case "command.cancelled":
      if (event.worker === undefined) commands.parked(event.command_id, null);
      commands.cancelled(event.command_id, event.worker !== undefined);
      return;
    case "execution.paused":
    case "execution.resumed": {
      // Rows that wait for a worker leave the index of those that may be claimed: polling does not read them again and again.
      const status = event.type === "execution.paused" ? "PAUSED" : "PENDING";
      for (const [id, command] of Object.entries(state.commands)) {
        if (isUnclaimed(command)) commands.set(id, status, {});
        if (command.parked !== undefined)
          commands.parked(id, event.type === "execution.paused" ? whilePaused(command.parked) : command.parked);
      }
      return;
    }
    default:
      return;
  }
}
