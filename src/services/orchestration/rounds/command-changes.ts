import type {
  CommandChange,
  CommandStatus,
  ExecutionChange,
  IssuedCommand,
  ParkedCommand,
  StoppedIteration,
} from "../../../ports/execution-store.ts";
import type { ParkedWork } from "../../../schema/words/command.ts";

const ENDS: ReadonlySet<CommandStatus> = new Set(["COMPLETED", "FAILED", "CANCELLED"]);

/**
 * The rows of an execution's commands that a round adds, changes or removes. The table holds open commands: one that has ended is in
 * the log. Its row stays only where a worker may still run it and has to be told: it was cancelled in a worker's hands, or
 * claimed more than once. So a missing row means that the command's only claim has reported its end.
 */
export function createCommandChanges() {
  const issued = new Map<string, IssuedCommand>();
  const changed = new Map<string, CommandChange>();
  const cancelledHeld = new Set<string>();
  const adopted = new Map<string, IssuedCommand>();
  const stopped: StoppedIteration[] = [];
  const waits = new Map<string, ParkedCommand | null>();
  /** Their earlier claims ended when they were parked. */
  const claimedOnce = new Set<string>();
  const woken = new Set<string>();
  let held: ReadonlySet<IssuedCommand> = new Set();
  const hasRow = ({ commandId, status, attempt }: CommandChange) =>
    !ENDS.has(status) || (attempt > 1 && !claimedOnce.has(commandId)) || cancelledHeld.has(commandId);
  return {
    rows: () => rowsOf({ issued, changed, waits, stopped }, hasRow),
    stopped: (iteration: StoppedIteration) => void stopped.push(iteration),
    /** Null: it waits no longer. */
    parked(id: string, work: ParkedWork | null) {
      const dueAt = work?.wake_at === undefined ? null : Date.parse(work.wake_at);
      waits.set(id, work && { commandId: id, kind: work.wait.kind, dueAt });
    },
    claimedOnce: (id: string) => void claimedOnce.add(id),
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
      const known = fresh ?? changed.get(id);
      const change: CommandChange = {
        commandId: id,
        status,
        attempt: known?.attempt ?? 0,
        worker: null,
        leaseMs: known?.leaseMs ?? null,
        ...more,
      };
      if (change.worker === null) change.leaseMs = null;
      if (fresh !== undefined) Object.assign(fresh, change);
      else changed.set(id, change);
    },
  };
}

interface CommandRows {
  issued: ReadonlyMap<string, IssuedCommand>;
  changed: ReadonlyMap<string, CommandChange>;
  waits: ReadonlyMap<string, ParkedCommand | null>;
  stopped: readonly StoppedIteration[];
}

function rowsOf({ issued, changed, waits, stopped }: CommandRows, hasRow: (change: CommandChange) => boolean) {
  return {
    issued: [...issued.values()].filter(hasRow),
    commands: [...changed.values()].filter(hasRow),
    ended: [...changed.values()].filter((change) => !hasRow(change)).map(({ commandId }) => commandId),
    ...waitRows(waits),
    ...stoppedRows(stopped, (id) => {
      const row = issued.get(id) ?? changed.get(id);
      return row !== undefined && hasRow(row);
    }),
  };
}

function waitRows(waits: ReadonlyMap<string, ParkedCommand | null>): Pick<ExecutionChange, "parked" | "unparked"> {
  if (waits.size === 0) return {};
  return {
    parked: [...waits.values()].filter((wait) => wait !== null),
    unparked: [...waits].flatMap(([id, wait]) => (wait === null ? [id] : [])),
  };
}

/** None for a command that has ended in the same round: no worker has it any more. */
function stoppedRows(
  all: readonly StoppedIteration[],
  hasRow: (commandId: string) => boolean,
): Pick<ExecutionChange, "stopped"> {
  const stopped = all.filter(({ commandId }) => hasRow(commandId));
  return stopped.length > 0 ? { stopped } : {};
}

/** See {@link createCommandChanges}. */
export type CommandChanges = ReturnType<typeof createCommandChanges>;
