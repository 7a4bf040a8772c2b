import { type ExecutionState, openCommand } from "../engine/state/state.ts";
import type { Clock } from "../ports/clock.ts";
import type { Command, ParkedWork, Signal } from "../schema/words/command.ts";
import type { FlowEvent } from "../schema/words/event.ts";
import type { TaskError } from "../schema/words/outcome.ts";
import { after } from "../worker/deadline.ts";

/** A signal that an execution of this process is sent, so long after its start. */
export interface LocalSignal {
  signal: Signal;
  afterMs: number;
}

/** Parked commands of an execution in memory, and the signals that it is sent. */
export interface LocalWaits {
  /** A command was run: if it was parked, it waits from here on. */
  ran(command: Command): void;
  /** Goes on with the commands that these events have woken. */
  observe(events: readonly FlowEvent[]): void;
  /** Begins to send the signals in their time; `taken` is called after each. */
  send(send: (signal: Signal) => Promise<unknown>, taken: () => void): void;
  /** Some commands wait, none of them by itself, and no signal is to come. */
  isForever(): boolean;
  end(): void;
}

/** What waits do: `wake` when the time of a command has come, `goOn` with a command that was woken. */
interface WaitsParts {
  clock: Clock;
  state: ExecutionState;
  signals: readonly LocalSignal[];
  wake(command: Command): void;
  goOn(command: Command): void;
}

/** Opens the list of parked commands, which is empty. */
export function createWaits({ clock, state, signals, wake, goOn }: WaitsParts): LocalWaits {
  const waits = new Map<string, { command: Command; cancel?: () => void }>();
  const timers: (() => void)[] = [];
  let toCome = signals.length;
  const add = (command: Command, parked: ParkedWork): void => {
    const { command_id: id } = command;
    if (parked.wake_at === undefined) return void waits.set(id, { command });
    const due = Date.parse(parked.wake_at);
    const cancel = after(clock, Math.max(0, due - clock.now()), () => {
      // A timer of this process lasts 24.8 days at most.
      if (due <= clock.now()) wake(command);
      else add(command, parked);
    });
    waits.set(id, { command, cancel });
  };
  return {
    ran(command) {
      const open = openCommand(state, command.command_id);
      if (open?.parked !== undefined) add(command, open.parked);
      // What it waits for was there before.
      else if (open?.woken !== undefined) goOn({ ...command, woken: open.woken });
    },
    observe(events) {
      for (const event of events) {
        if (event.type !== "command.woken") continue;
        const found = waits.get(event.command_id);
        const woken = openCommand(state, event.command_id)?.woken;
        found?.cancel?.();
        waits.delete(event.command_id);
        if (found !== undefined && woken !== undefined) goOn({ ...found.command, woken });
      }
    },
    send(send, taken) {
      const end = () => {
        toCome -= 1;
        taken();
      };
      for (const { signal, afterMs } of signals) timers.push(after(clock, afterMs, () => void send(signal).then(end)));
    },
    isForever: () => toCome === 0 && waits.size > 0 && [...waits.values()].every(({ cancel }) => cancel === undefined),
    end() {
      for (const { cancel } of waits.values()) cancel?.();
      for (const cancel of timers) cancel();
      waits.clear();
    },
  };
}

/** Why an execution of this process ends that waits for signals which do not come. */
export function neverSent({ commands }: ExecutionState): TaskError {
  const [first] = Object.values(commands).filter(({ parked }) => parked?.wait.kind === "signal");
  const wait = first?.parked?.wait;
  const { name = "", key } = wait?.kind === "signal" ? wait : {};
  const shown = key === undefined ? name : `${name}[${key}]`;
  const message = `Step '${first?.step}' waits for signal '${shown}', which is not sent in this run. Give --signal '${shown}=JSON' (in a test: \`signals\`), or the wait a \`timeout\`, or run it on a server`;
  return {
    kind: "configuration",
    code: "SIGNAL_NOT_SENT",
    message,
    retryable: false,
    ...(first && { step: first.step }),
  };
}
