import { type Account, openAccount } from "../../language/expression/parsing/budget.ts";
import type { Command } from "../../schema/words/command.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import type { Json } from "../../schema/words/json.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import type { EngineEnv } from "../env.ts";
import type { Program } from "../program/program.ts";
import { evolve } from "../state/evolve.ts";
import { type ExecutionState, isTerminal } from "../state/state.ts";
import { type Decision, decide } from "./decide.ts";
import type { StoreWrite } from "./loop.ts";

/** The consequences of one event, and how far they have been decided. */
export interface Advance {
  /** The event itself first, then the events that follow from it, in order. */
  events: FlowEvent[];
  /** For each of `events` the index of the event that caused it; null for an external event. */
  causes: (number | null)[];
  /** For each of `events` the account of the external event that it follows from. */
  accounts: Account[];
  commands: Command[];
  /** Payloads to store before the events are committed. */
  writes: StoreWrite[];
  /** Index of the first event whose consequences were not decided yet. */
  undecided: number;
}

/**
 * Most events that one event may lead to. No valid playbook comes near it: a cascade is as long as the steps that are skipped
 * without a worker in between.
 */
export const CASCADE_MAX = 1_000_000;

/** Steps of the account that a decision costs beside its templates: a cascade of steps that are skipped ends too. */
const DECISION_STEPS = 25;

/** Folds the event alone. {@link continueAdvance} decides its consequences. */
export function beginAdvance(state: ExecutionState, event: FlowEvent): Advance {
  evolve(state, event);
  return advanceOf([event]);
}

/** External events that are folded, and of which nothing is decided yet. Each has an account of its own. */
export function advanceOf(events: FlowEvent[]): Advance {
  return {
    events,
    causes: events.map(() => null),
    accounts: events.map(openAccount),
    commands: [],
    writes: [],
    undecided: 0,
  };
}

/** Decides all that follows; as {@link decideNext} until nothing is left. */
export function continueAdvance(progress: Advance, state: ExecutionState, program: Program, env: EngineEnv): void {
  while (decideNext(progress, state, program, env));
}

/**
 * Decides what follows from the next event; false if nothing was left. What is decided is folded before the next decision, so
 * that no decision is made on an outdated state. Throws `ReferenceNeeded` if the decision lacks a payload. Then nothing of it is
 * folded: load the payload and call again with the same `progress`.
 */
export function decideNext(progress: Advance, state: ExecutionState, program: Program, env: EngineEnv): boolean {
  const { events, causes, accounts, commands, writes, undecided } = progress;
  const current = events[undecided];
  const account = accounts[undecided];
  if (current === undefined || account === undefined) return false;
  const decision = decideWithin(account, state, current, program, { ...withStaged(env, writes), account });
  for (const decided of decision.events) {
    // Before folding: values from the state go into commands too.
    const next = env.sealing?.event(decided) ?? decided;
    evolve(state, next);
    events.push(next);
    causes.push(undecided);
    accounts.push(account);
  }
  commands.push(...decision.commands);
  for (const write of decision.writes) writes.push({ ...write, value: sealedWrite(write, env) });
  if (events.length > CASCADE_MAX) throw new Error(`One event led to more than ${CASCADE_MAX} others`);
  if (decision.isPart !== true) progress.undecided += 1;
  return true;
}

/** A decision that starts over, because it lacked a payload, is charged once. */
function decideWithin(
  account: Account,
  state: ExecutionState,
  event: FlowEvent,
  program: Program,
  env: EngineEnv,
): Decision {
  const { left } = account;
  if (left < 0 && state.failure === null && !isTerminal(state.status) && !ENDS.has(event.type))
    return stopped(state, env);
  try {
    const decision = decide(state, event, program, env);
    account.left -= DECISION_STEPS;
    return decision;
  } catch (error) {
    account.left = left;
    throw error;
  }
}

/** Events that end the execution, or follow from its end. */
const ENDS: ReadonlySet<FlowEvent["type"]> = new Set(["workflow.failed", "workflow.completed"]);

/** Ends an execution of which one event leads to too many others. */
function stopped({ path }: ExecutionState, env: EngineEnv): Decision {
  const message = `One event in '${path}' leads to too many others: steps are skipped, or lead back, without any work in between`;
  const error: TaskError = { kind: "template", code: "DECISION_BUDGET", message, retryable: false };
  return { events: [{ type: "workflow.failed", at: env.now, error }], commands: [], writes: [] };
}

/** A result that is sensitive as a whole is also sealed as a whole, by the store. */
function sealedWrite({ value, keeping }: StoreWrite, { sealing }: EngineEnv): Json {
  return sealing === undefined || keeping?.sensitive === true ? value : sealing.value(value);
}

/** Lets this advance read the payloads that it is about to store. */
function withStaged(env: EngineEnv, writes: readonly StoreWrite[]): EngineEnv {
  if (writes.length === 0) return env;
  const stagedAt = (ref: string): Json | undefined => {
    const staged = writes.find((write) => write.ref === ref)?.value;
    return staged === undefined || env.sealing === undefined ? staged : env.sealing.open(staged);
  };
  const get = (ref: string): Json | undefined => env.references.get(ref) ?? stagedAt(ref);
  return { ...env, references: { get } };
}
