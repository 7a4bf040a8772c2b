import type { Logger } from "../../platform/telemetry/logger.ts";
import type { ClaimedWork } from "../../ports/work-server.ts";
import type { WorkerEvent } from "../../worker/worker-event.ts";

/** Turns a worker's events into log lines and counters: a worker has no port to scrape. */
export interface WorkerLog {
  record(event: WorkerEvent): void;
  /** Counters since the start: commands, given up, mean milliseconds of a command, requests that were tried again. */
  totals(): WorkerTotals;
}

/** What a worker did since it started. */
export interface WorkerTotals {
  commands: number;
  given_up: number;
  mean_ms: number;
  retries: number;
}

/** Nothing is logged above `debug` for a command that goes well. */
export function createWorkerLog(logger: Logger): WorkerLog {
  let commands = 0;
  let givenUp = 0;
  let totalMs = 0;
  let retries = 0;
  return {
    record(event) {
      switch (event.type) {
        case "command.ended":
          if (event.outcome === "given up") givenUp += 1;
          else commands += 1;
          totalMs += event.durationMs;
          logger.debug({ ...ids(event.work), duration_ms: event.durationMs }, `a command was ${event.outcome}`);
          return;
        case "claim.given_up":
          logger.info(ids(event.work), `a command is given up: ${event.why}`);
          return;
        case "server.unavailable": {
          const { doing, tries, delayMs, message } = event;
          retries += 1;
          const line = `the server does not answer while ${doing}: ${message}`;
          const fields = { tries, next_try_ms: Math.round(delayMs) };
          // The first failure, and from then on about every two minutes.
          if (tries % TRIES_PER_LINE === 1) logger.warn(fields, line);
          else logger.debug(fields, line);
          return;
        }
        case "server.back":
          logger.info({ tries: event.tries }, `the server answers again (${event.doing})`);
          return;
        case "report.invalid":
          logger.error(ids(event.work), `the server refused events as malformed: ${event.message}`);
          return;
        case "fault": {
          const { work, error } = event;
          logger.error({ ...(work !== undefined && ids(work)), err: error }, `${event.doing} failed`);
        }
      }
    },
    totals: () => ({
      commands,
      given_up: givenUp,
      mean_ms: Math.round((totalMs / Math.max(1, commands + givenUp)) * 100) / 100,
      retries,
    }),
  };
}

const TRIES_PER_LINE = 12;

function ids({ command, attempt }: ClaimedWork): Record<string, unknown> {
  return { execution_id: command.execution_id, command_id: command.command_id, step: command.step, attempt };
}
