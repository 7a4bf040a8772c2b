import { taskScope } from "../../engine/decide/task-scope.ts";
import { milliseconds } from "../../engine/decide/time-limit.ts";
import type { ProgramStep } from "../../engine/program/program.ts";
import { createSecrets, type Secrets } from "../../engine/sealing/secrets.ts";
import { endsClaim } from "../../engine/state/accept.ts";
import { type LoadedReferences, loadedReferences } from "../../language/template/loaded-references.ts";
import type { Template } from "../../language/template/template.ts";
import type { WritableResultStore } from "../../ports/result-store.ts";
import type { Command, CommandLoop } from "../../schema/words/command.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { CommandRef, FlowEvent } from "../../schema/words/event.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import { after, timedOut } from "../deadline.ts";
import type { CommandProgram, Report, WorkerDeps } from "../deps.ts";
import { openTokens } from "../secrets/credentials.ts";
import { openKeychain } from "../secrets/keychain.ts";
import { notingSource } from "../secrets/note-secrets.ts";
import { type SealedWork, sealWork } from "../secrets/seal-work.ts";
import type { CommandContext } from "../task/command-context.ts";
import { freshState, pipelineMark, runPipeline } from "../task/pipeline.ts";
import type { PipelineRun } from "../task/pipeline-run.ts";
import { Parked } from "../task/wait.ts";
import { runIterations } from "./iterations.ts";
import { runCursorClaim } from "./run-cursor-claim.ts";
import { stepInput } from "./step-input.ts";

/** A command as it was claimed. */
export interface ClaimedCommand {
  command: Command;
  /** Fencing token of the claim. */
  attempt: number;
}

/**
 * Runs one claimed command to its end and reports what happens: every task run, every iteration, and last
 * `command.completed` or `command.failed`, or that it is parked. Aborting the signal stops the tools; the command then fails as cancelled.
 */
export async function runCommand(
  parts: WorkerDeps,
  source: CommandProgram,
  claimed: ClaimedCommand,
  receiver: Report,
  signal: AbortSignal,
): Promise<void> {
  const { command, attempt } = claimed;
  const secrets = createSecrets();
  const sealed = sealWork(parts, command, receiver, secrets, signal);
  const { deps } = sealed;
  const ref: CommandRef = { command_id: command.command_id, attempt, step: command.step, worker: deps.worker };
  const step = source.program.steps.get(command.step);
  if (step === undefined) {
    const message = `The command is for step '${command.step}', which this version of the playbook does not have`;
    const error: TaskError = { kind: "configuration", code: "NOT_FOUND", message, retryable: false };
    await sealed.report([{ type: "command.failed", at: deps.clock.now(), ...ref, error }]);
    return;
  }
  const { report, endMark } = markingStart(deps, step, ref, sealed.report);
  let limit: Limit | undefined;
  let frame: Limit | undefined;
  try {
    const opened = await sealed.open(command);
    const context = await surroundings(sealed, secrets, source, step, opened, signal);
    limit = await stepDeadline(context, step, signal);
    if (command.claim !== undefined)
      await runCursorClaim(context, step, command.claim.max_rows, ref, report, limit.signal);
    else if (command.loop !== undefined) {
      frame = frameDeadline(context, step, command.loop, limit.signal);
      await runIterations(context, step, opened.loop ?? command.loop, ref, report, frame.signal);
    } else await runStep(context, step, ref, report, limit.signal);
  } catch (error) {
    if (error instanceof Parked) return await report([parkedEvent(error, ref, limit?.endsAt, deps.clock.now())]);
    // WHATEVER went wrong, the command must get its end: a command without one would hold its execution forever.
    const code = error instanceof FlowError ? error.code : "INTERNAL";
    const failure: TaskError = {
      kind: code === "TIMEOUT" ? "timeout" : "unknown",
      code,
      message: messageOf(error),
      retryable: false,
      step: command.step,
    };
    await report([{ type: "command.failed", at: deps.clock.now(), ...ref, error: failure }]);
  } finally {
    endMark();
    frame?.end();
    limit?.end();
  }
}

/** The command waits until its own moment, or until the time of its step is over; for a signal or people alone, for as long as it takes. */
function parkedEvent({ wait, resume }: Parked, ref: CommandRef, limit: number | undefined, at: number): FlowEvent {
  const end = wait.expires ?? ("due" in wait ? wait.due : undefined);
  const due = end === undefined ? Number.POSITIVE_INFINITY : Date.parse(end);
  const isLimit = limit !== undefined && limit < due;
  const wakeAt = Math.min(due, limit ?? due);
  return {
    type: "command.parked",
    at,
    ...ref,
    task: resume.task,
    ...(resume.iteration !== undefined && { iteration: resume.iteration }),
    ...{ wait, resume },
    ...(Number.isFinite(wakeAt) && { wake_at: new Date(wakeAt).toISOString() }),
    ...(isLimit && { limit: true }),
  };
}

/** Work that lasts longer has a `command.started` in the log (decisions, "Event types"); short work saves the row. */
const STARTED_AFTER_MS = 250;

/** `noop` and `wait` never last; a timer for each of a hundred thousand would be a fifth of their cost. */
function mayLast(step: ProgramStep): boolean {
  return step.tasks.some(({ task }) => task.kind !== "noop" && task.kind !== "wait");
}

/**
 * The same receiver, which also reports that the command has started, once it has run that long. No such mark follows the
 * command's end: the server refuses an end sent together with a later event, and the work would be done a second time.
 */
function markingStart(
  deps: WorkerDeps,
  step: ProgramStep,
  ref: CommandRef,
  report: Report,
): { report: Report; endMark(): void } {
  if (!mayLast(step)) return { report, endMark: () => undefined };
  let isOver = false;
  let underWay: Promise<void> | undefined;
  const cancel = after(deps.clock, STARTED_AFTER_MS, () => {
    if (isOver) return;
    // Only the command's end waits for this mark; if reporting it fails, the next report throws.
    underWay = report([{ type: "command.started", at: deps.clock.now(), ...ref }]).catch(() => undefined);
  });
  const endMark = () => {
    isOver = true;
    cancel();
  };
  const inOrder: Report = async (events) => {
    if (events.some(endsClaim)) {
      endMark();
      await underWay;
    }
    await report(events);
  };
  return { report: inOrder, endMark };
}

async function surroundings(
  { deps: parts, open }: SealedWork,
  secrets: Secrets,
  source: CommandProgram,
  step: ProgramStep,
  command: Command,
  signal: AbortSignal,
): Promise<CommandContext> {
  const references = loadedReferences(parts.results);
  const results = forgettingResults(parts.results, references);
  const deps = { ...parts, credentials: notingSource(parts.credentials, secrets, command.execution_id), results };
  const { credentials, secretSource, clock } = deps;
  const tokens = openTokens({ credentials, secretSource, clock, note: secrets.note, signal });
  const options = { now: () => clock.now(), token: tokens.template, ...defined({ account: deps.account }) };
  const place = { command, spec: source.program.playbook.spec, references, env: deps.env, keychain: undefined };
  if (!step.needs.members.has("keychain")) return { deps, source, place, secrets, open, options, tokens };
  const render = (template: Template, keychain: unknown) => {
    const at = { input: () => command.context.input, attempt: 1 };
    const scope = taskScope({ ...place, keychain }, freshState(), at);
    return references.evaluate(() => template.render(scope, options));
  };
  const keychain = openKeychain({ entries: source.program.keychain, command, deps, secrets, render, signal });
  return { deps, source, place: { ...place, keychain }, secrets, open, options, tokens };
}

/** The same store. What was loaded of a reference is forgotten when another payload is stored under it: a retry does so. */
function forgettingResults(store: WritableResultStore, references: LoadedReferences): WritableResultStore {
  return {
    kind: store.kind,
    load: (ref) => store.load(ref),
    async save(ref, json, keeping) {
      try {
        return await store.save(ref, json, keeping);
      } finally {
        references.forget(ref);
      }
    },
  };
}

/** Aborts at a step's own time-out. */
interface Limit {
  signal: AbortSignal;
  /** Milliseconds since 1970; undefined: no limit. */
  endsAt?: number;
  end: () => void;
}

/** The signal of the step's own time-out, on top of the command's. */
async function stepDeadline(context: CommandContext, step: ProgramStep, signal: AbortSignal): Promise<Limit> {
  if (step.timeoutMs === undefined) return { signal, end: () => undefined };
  const template = step.timeoutMs;
  // Mostly a number, for which no input need be rendered.
  const input = typeof template.source === "string" ? await stepInput(context, step) : {};
  const scope = taskScope(context.place, freshState(), { input: () => input, attempt: 1 });
  const { references } = context.place;
  const limitMs = milliseconds(await references.evaluate(() => template.render(scope, context.options)));
  if (limitMs === undefined) return { signal, end: () => undefined };
  const endsAt = context.place.command.step_started_at + limitMs;
  return limitUntil(context, endsAt, timedOut(`Step '${step.step.name}'`, limitMs), signal);
}

/** The signal of the frame that a cursor's rows are of: `frame.max_seconds` count from the moment when they were claimed. */
function frameDeadline(context: CommandContext, step: ProgramStep, loop: CommandLoop, signal: AbortSignal): Limit {
  if (loop.frame_ends_at === undefined) return { signal, end: () => undefined };
  const message = `The frame of step '${step.step.name}' did not end within its max_seconds and was stopped`;
  return limitUntil(context, loop.frame_ends_at, new FlowError("TIMEOUT", message), signal);
}

function limitUntil(context: CommandContext, endsAt: number, reason: FlowError, signal: AbortSignal): Limit {
  const controller = new AbortController();
  const expire = () => controller.abort(reason);
  // A server's clock woke it for that: this one may be behind.
  const isOver = context.place.command.woken?.limit === true;
  const leftMs = isOver ? 0 : endsAt - context.deps.clock.now();
  if (leftMs <= 0) expire();
  const end = after(context.deps.clock, Math.max(0, leftMs), expire);
  return { signal: AbortSignal.any([signal, controller.signal]), endsAt, end };
}

async function runStep(
  context: CommandContext,
  step: ProgramStep,
  ref: CommandRef,
  report: Report,
  signal: AbortSignal,
): Promise<void> {
  const { command } = context.place;
  const state = freshState(undefined, {}, command.context.parent_iter);
  const goesOn = defined({ woken: command.woken });
  const run: PipelineRun = { context, step, state, ref, report, signal, mayPark: true, ...goesOn };
  const end = await runPipeline(run);
  const at = context.deps.clock.now();
  const body = {
    ...ref,
    tasks: end.tasks,
    ...pipelineMark(step),
    ...(end.results.length > 0 && { results: end.results }),
    ...(end.set.length > 0 && { set: end.set }),
  };
  await report([
    end.error === null
      ? { type: "command.completed", at, ...body }
      : { type: "command.failed", at, ...body, error: end.error },
  ]);
}
