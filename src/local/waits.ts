import { nextDueOf } from "../engine/state/evolve-approval.ts";
import { type ExecutionState, openCommand, type Parked } from "../engine/state/state.ts";
import type { Clock } from "../ports/clock.ts";
import type { Command, Signal } from "../schema/words/command.ts";
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
  /** `isEndless`: it does not go on by itself, whatever people are reminded of meanwhile. */
  const waits = new Map<string, { command: Command; isEndless: boolean; cancel?: () => void }>();
  const timers: (() => void)[] = [];
  let toCome = signals.length;
  const add = (command: Command, parked: Parked): void => {
    const { command_id: id } = command;
    const isEndless = parked.wake_at === undefined;
    const due = nextDueOf(parked);
    if (due === undefined) return void waits.set(id, { command, isEndless });
    const cancel = after(clock, Math.max(0, due - clock.now()), () => {
      // A timer of this process lasts 24.8 days at most.
      if (due <= clock.now()) wake(command);
      else add(command, parked);
    });
    waits.set(id, { command, isEndless, cancel });
  };
  /** People were reminded: the next time is awaited. */
  const again = (id: string) => {
    const command = waits.get(id)?.command;
    const parked = openCommand(state, id)?.parked;
    waits.get(id)?.cancel?.();
    if (command !== undefined && parked !== undefined) add(command, parked);
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
        if (event.type === "approval.reminded" || event.type === "approval.escalated") again(event.command_id);
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
    isForever: () => toCome === 0 && waits.size > 0 && [...waits.values()].every(({ isEndless }) => isEndless),
    end() {
      for (const { cancel } of waits.values()) cancel?.();
      for (const cancel of timers) cancel();
      waits.clear();
    },
  };
}

/** Why an execution of this process ends that waits for signals which do not come, or for people who do not answer. */
export function neverSent({ commands }: ExecutionState): TaskError {
  const [first] = Object.values(commands).filter(({ parked }) => parked !== undefined);
  const wait = first?.parked?.wait;
  if (wait?.kind === "approval") return neverAnswered(first?.step ?? "", wait.title);
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

function neverAnswered(step: string, title: string): TaskError {
  const message = `Step '${step}' waits for an approval ('${title}'), and no person can be asked here. Give --answer ${step}=approve, or --yes (in a test: \`approvals\`), or the wait a \`timeout\`, or run it on a server`;
  return { kind: "configuration", code: "APPROVAL_NOT_GIVEN", message, retryable: false, step };
}
