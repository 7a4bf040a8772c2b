import type { ExecutionChange, ParkedCommand } from "../../../ports/execution-store.ts";
import type { ParkedWork } from "../../../schema/words/command.ts";

/** The rows of what the commands of one execution wait for, as a round changes them. */
export interface WaitRows {
  /** Null: it waits no longer. */
  set(commandId: string, work: ParkedWork | null): void;
  rows(): Pick<ExecutionChange, "parked" | "unparked">;
  /** When something may first be done for one of them, milliseconds since 1970: a signal may have been kept for it. */
  soonest(): number | undefined;
}

/** No row is changed. */
export function createWaitRows(): WaitRows {
  const waits = new Map<string, ParkedCommand | null>();
  return {
    set: (id, work) => void waits.set(id, work && waitRow(id, work)),
    rows: () =>
      waits.size === 0
        ? {}
        : {
            parked: [...waits.values()].filter((wait) => wait !== null),
            unparked: [...waits].flatMap(([id, wait]) => (wait === null ? [id] : [])),
          },
    soonest() {
      let soonest: number | undefined;
      for (const wait of waits.values()) {
        const at = wait?.signal !== undefined ? 0 : (wait?.dueAt ?? Number.POSITIVE_INFINITY);
        if (wait !== null && (soonest === undefined || at < soonest)) soonest = at;
      }
      return soonest;
    },
  };
}

function waitRow(commandId: string, { wait, wake_at: due }: ParkedWork): ParkedCommand {
  const signal = wait.kind === "signal" ? { signal: { name: wait.name, key: wait.key ?? "" } } : {};
  return { commandId, kind: wait.kind, dueAt: due === undefined ? null : Date.parse(due), ...signal };
}

/** A timer that comes due during a pause counts at the resumption: until then no sweep looks at it. Signals to everyone reach the execution. */
export function whilePaused({ wake_at: _, ...work }: ParkedWork): ParkedWork | null {
  return work.wait.kind === "signal" ? work : null;
}
