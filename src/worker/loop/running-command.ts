import type { Attachment, ClaimedWork } from "../../ports/work-server.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { createIterationStops, type IterationStops } from "../iteration-stops.ts";

/** A claimed command while this worker runs it. */
export interface RunningCommand {
  readonly work: ClaimedWork;
  readonly startedAt: number;
  /** Aborted when its tools are to stop. */
  readonly signal: AbortSignal;
  /** Of its iterations those that are ended by hand. */
  readonly stops: IterationStops;
  /** Large results that go with reports, by their references, until the server has them. */
  readonly attachments: Map<string, Attachment>;
  /** Nothing is reported for it any more: its claim is lost, it was cancelled, or the worker stops. */
  isGivenUp(): boolean;
  /** Stops it and reports nothing more. */
  giveUp(why: string): void;
}

/** What a claim begins with. */
export interface RunningCommandStart {
  work: ClaimedWork;
  /** Milliseconds since 1970. */
  startedAt: number;
  /** Makes a controller whose signal may have any number of listeners. */
  newAbort(): AbortController;
  /** Called once, before the tools are stopped. */
  onGiveUp(why: string): void;
}

/** A claim that runs. */
export function createRunningCommand({ work, startedAt, newAbort, onGiveUp }: RunningCommandStart): RunningCommand {
  let isGivenUp = false;
  const controller = newAbort();
  return {
    work,
    startedAt,
    signal: controller.signal,
    stops: createIterationStops(newAbort),
    attachments: new Map(),
    isGivenUp: () => isGivenUp,
    giveUp(why) {
      if (isGivenUp) return;
      isGivenUp = true;
      onGiveUp(why);
      controller.abort(new FlowError("CANCELLED", `The command was stopped: ${why}`));
    },
  };
}
