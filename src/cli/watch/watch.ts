import { setTimeout as delay } from "node:timers/promises";
import type { LocalPlaybook } from "../../local/catalog.ts";
import { EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { type CliIo, type CliValues, EXIT } from "../command-line/command.ts";
import { serverLocation } from "../progress/failure-report.ts";
import { openProgress } from "../progress/open-progress.ts";
import type { RunModel } from "../progress/run-model.ts";
import { callServer } from "../server/client.ts";
import { eventPages, isTransient, serverResults } from "../server/executions-api.ts";
import { everyItem } from "../server/paginate.ts";
import type { ServerTarget } from "../server/target.ts";
import { plural } from "../terminal/text.ts";
import { PAYLOAD_BYTES_MAX, type Recorder } from "./record.ts";
import { collectRefs, readStored } from "./stored-results.ts";
import { prepareOutcome } from "./summary.ts";
import { watchForWorkers } from "./wait-reason.ts";
import { watchExecution } from "./watch-execution.ts";
import { runWatched, type Watch } from "./watched-run.ts";

/** The execution to watch. */
export interface ServerRun {
  target: ServerTarget;
  executionId: string;
  /** Undefined if it cannot be read; the steps are shown anyway. */
  document: LocalPlaybook | undefined;
  /** When this process started it, milliseconds since 1970; undefined if another one did. */
  startedAt: number | undefined;
  /** Ctrl-C cancels it; else it leaves it running. */
  cancelOnStop: boolean;
}

/**
 * Watches an execution on a server to its end and prints its outcome, with the exit codes of a local run. Throws `FlowError`
 * SERVER_UNREACHABLE when the connection is lost, and the server's errors.
 */
export function watchOnServer(run: ServerRun, watch: Watch, options: CliValues, io: CliIo): Promise<number> {
  const { target, executionId, document } = run;
  const away = new AbortController();
  const signal = run.cancelOnStop ? away.signal : AbortSignal.any([away.signal, io.signal]);
  watch.progress = openProgress(watch.model, options, io, {
    now: serverClock(watch.model, run),
    address: pageAddress(target, executionId),
  });
  const refs = new Set<string>();
  const stop = () => void cancel(run, io).catch((error: unknown) => away.abort(error));
  if (run.cancelOnStop && io.signal.aborted) stop();
  else if (run.cancelOnStop) io.signal.addEventListener("abort", stop, { once: true });
  return runWatched(
    watch,
    io,
    async () => {
      const over = new AbortController();
      const hinting = watchForWorkers(target, watch.model, (text) => watch.progress.notice(text), over.signal);
      try {
        await watchExecution({
          ...{ target, executionId, signal, hasChildren: document === undefined || callsPlaybooks(document) },
          onRecords(records) {
            if (watch.recorder === undefined) return;
            watch.recorder.write(records);
            collectRefs(records, refs);
          },
          observe: (state, events) => watch.progress.observe(watch.model.observe(state, events), events),
          onNotice: (text) => watch.progress.notice(text),
        });
        if (watch.recorder !== undefined) {
          await recordChildren(target, executionId, watch.recorder, signal);
          await recordStored(target, refs, watch.recorder, signal);
        }
        const left = await stillRunning(run, signal);
        const source = {
          playbook: document,
          results: serverResults(target, signal),
          place: serverLocation(executionId),
        };
        const print = await prepareOutcome(watch.model, source, options, io);
        return () => {
          const code = print();
          if (left !== undefined) io.stderr.write(`${left}\n`);
          return code;
        };
      } catch (error) {
        if (away.signal.aborted) throw away.signal.reason;
        if (!run.cancelOnStop && io.signal.aborted) return () => stopWatching(executionId, io);
        throw connectionLost(error, executionId);
      } finally {
        over.abort();
        await hinting;
        io.signal.removeEventListener("abort", stop);
      }
    },
    run.cancelOnStop,
  );
}

/** Adds the events of all sub-playbooks, at any depth, to the record of an execution that has ended. */
async function recordChildren(
  target: ServerTarget,
  executionId: string,
  recorder: Recorder,
  signal: AbortSignal,
): Promise<void> {
  const query = { parent_execution_id: executionId };
  const children = await everyItem(target, EXECUTION_ROUTES.list, { query, signal }, (page) => page.executions);
  for (const child of children) {
    for await (const records of eventPages(target, child.execution_id, 0, signal)) recorder.write(records);
    await recordChildren(target, child.execution_id, recorder, signal);
  }
}

/** Adds what is stored apart of the execution's own results: a replay reads no others. */
async function recordStored(
  target: ServerTarget,
  refs: ReadonlySet<string>,
  recorder: Recorder,
  signal: AbortSignal,
): Promise<void> {
  for (const ref of refs) {
    const stored = await readStored(target, ref, PAYLOAD_BYTES_MAX, signal);
    if (stored !== undefined) recorder.payload(stored);
  }
}

/** Where a browser shows an execution: servers and gateways have the page beside their API. */
export function pageAddress({ url }: ServerTarget, executionId: string): string {
  return `${url}/executions/${executionId}`;
}

function stopWatching(executionId: string, io: CliIo): number {
  io.stderr.write(`Execution ${executionId} keeps running; 'flow cancel ${executionId}' cancels it\n`);
  return EXIT.cancelled;
}

/**
 * The clock for durations. Events carry the server's times, and two clocks may be minutes apart: the start of the execution
 * is taken to be when this process requested it.
 */
function serverClock(model: RunModel, { startedAt }: ServerRun): () => number {
  return () => {
    const began = model.root()?.state.startedAt ?? 0;
    return startedAt === undefined || began === 0 ? Date.now() : Date.now() - (startedAt - began);
  };
}

function callsPlaybooks({ program }: LocalPlaybook): boolean {
  return [...program.steps.values()].some(({ step }) =>
    step.tasks.some(({ kind }) => kind === "playbook" || kind === "workbook"),
  );
}

/** Attempts to have an execution cancelled before this command gives up on it. */
const CANCEL_ATTEMPTS = 3;
const CANCEL_RETRY_MS = 500;

async function cancel({ target, executionId }: ServerRun, io: CliIo): Promise<void> {
  const { reason } = io.signal;
  const body = { reason: reason instanceof FlowError ? reason.message : "interrupted" };
  const { signal: patient } = new AbortController();
  for (let attempt = 1; ; attempt += 1) {
    try {
      await callServer(target, EXECUTION_ROUTES.cancel, {
        params: { execution_id: executionId },
        body,
        signal: patient,
      });
      return;
    } catch (error) {
      if (!isTransient(error) || attempt === CANCEL_ATTEMPTS) {
        const hint = `It keeps running; try again with 'flow cancel ${executionId}'`;
        const message = `Execution ${executionId} could not be cancelled: ${messageOf(error)}. ${hint}`;
        throw new FlowError(error instanceof FlowError ? error.code : "INTERNAL", message, { cause: error });
      }
      await delay(CANCEL_RETRY_MS);
    }
  }
}

/** The server continues sub-playbooks that no step waits for; this command does not wait for them. */
async function stillRunning(
  { target, executionId, document }: ServerRun,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (document !== undefined && !callsPlaybooks(document)) return undefined;
  const query = { parent_execution_id: executionId, status: "RUNNING,PAUSED", limit: 100 };
  const { executions } = await callServer(target, EXECUTION_ROUTES.list, { query, signal }).catch(() => ({
    executions: [],
  }));
  if (executions.length === 0) return undefined;
  const what = `${plural(executions.length, "sub-playbook")} that no step waits for keep running`;
  return `${what}: 'flow executions --parent ${executionId}' shows them`;
}

function connectionLost(error: unknown, executionId: string): unknown {
  if (!(error instanceof FlowError) || !isTransient(error)) return error;
  const hint = `It keeps running on the server: 'flow status ${executionId}' shows it`;
  return new FlowError(error.code, `Lost sight of execution ${executionId}: ${error.message}. ${hint}`, {
    cause: error,
  });
}
