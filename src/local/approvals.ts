import { type ExecutionState, openCommand, type Parked } from "../engine/state/state.ts";
import type { Clock } from "../ports/clock.ts";
import type { ApprovalDecision, ApprovalRequest } from "../schema/words/approval.ts";
import { defined } from "../schema/words/defined.ts";
import { FlowError } from "../schema/words/errors.ts";
import type { EventOf, FlowEvent } from "../schema/words/event.ts";
import { isJsonObject, type Json, own } from "../schema/words/json.ts";
import { after } from "../worker/deadline.ts";

/** What a person is asked. */
export interface LocalQuestion {
  step: string;
  request: ApprovalRequest;
  /** Persons who have decided already. */
  decided: number;
  /** What was wrong with the last answer. */
  problem?: string;
}

/** What a person says to it, so long after they were asked. */
export interface LocalAnswer {
  decision: ApprovalDecision["decision"];
  data?: Json;
  comment?: string;
  by?: string;
  afterMs: number;
}

/** Answers for the approvals of a run in this process; undefined: no person answers. */
export type AnswerApproval = (question: LocalQuestion, signal: AbortSignal) => Promise<LocalAnswer | undefined>;

/** The approvals of an execution in memory. */
export interface LocalApprovals {
  /** Asks for each approval that these events have opened. */
  observe(events: readonly FlowEvent[]): void;
  /** A person is being asked. */
  isAsking(): boolean;
  end(): void;
}

interface ApprovalsParts {
  clock: Clock;
  state: ExecutionState;
  answer: AnswerApproval;
  /** Folds a decision. */
  decide(event: EventOf<"approval.decided">): Promise<unknown>;
  /** No person answers any more. */
  onSilence(): void;
  onFault(error: unknown): void;
}

/** Opens the list of those that are asked, which is empty. */
export function createLocalApprovals(parts: ApprovalsParts): LocalApprovals {
  const stop = new AbortController();
  let asking = 0;
  const ask = async (opened: EventOf<"approval.opened">): Promise<void> => {
    asking += 1;
    try {
      await askUntilClosed(parts, opened, stop.signal);
    } catch (error) {
      if (!stop.signal.aborted) parts.onFault(error);
    } finally {
      asking -= 1;
      if (!stop.signal.aborted) parts.onSilence();
    }
  };
  return {
    observe(events) {
      for (const event of events) if (event.type === "approval.opened") void ask(event);
    },
    isAsking: () => asking > 0,
    end: () => stop.abort(),
  };
}

async function askUntilClosed(
  { clock, state, answer, decide }: ApprovalsParts,
  { approval_id, command_id, step, iteration }: EventOf<"approval.opened">,
  signal: AbortSignal,
): Promise<void> {
  let problem: string | undefined;
  const open = () => openApproval(openCommand(state, command_id)?.parked, approval_id);
  for (let found = open(); found !== undefined && !signal.aborted; found = open()) {
    const { request, decisions } = found;
    const said = await answer({ step, request, decided: decisions.length, ...defined({ problem }) }, signal);
    if (said === undefined) return;
    const { afterMs, by = personOf(decisions), ...given } = said;
    if (afterMs > 0) await sleep(clock, afterMs, signal);
    if (open() === undefined) return;
    problem =
      (await problemOf(request, given)) ??
      (decisions.some((one) => one.by === by) ? `${by} has decided already` : undefined);
    if (problem !== undefined) continue;
    const place = { approval_id, command_id, step, ...defined({ iteration }) };
    await decide({ type: "approval.decided", at: clock.now(), ...place, ...given, by });
  }
}

function openApproval(parked: Parked | undefined, id: string) {
  if (parked?.wait.kind !== "approval" || parked.approval?.id !== id || parked.approval.outcome !== undefined)
    return undefined;
  return { request: parked.wait, decisions: parked.approval.decisions };
}

/** The person who runs a playbook here is everyone who is asked. */
function personOf(decisions: readonly ApprovalDecision[]): string {
  return decisions.length === 0 ? "local" : `local ${decisions.length + 1}`;
}

async function problemOf({ form }: ApprovalRequest, { decision, data }: Pick<LocalAnswer, "decision" | "data">) {
  if (form === undefined || (decision === "reject" && data === undefined)) return undefined;
  const { problemsWithData } = await import("../platform/json-schema.ts");
  const problems = problemsWithData(form, data ?? {});
  return problems.length === 0
    ? undefined
    : problems.map(({ path, message }) => (path === "" ? `the data ${message}` : `${path} ${message}`)).join("; ");
}

function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const cancel = after(clock, ms, resolve);
    signal.addEventListener(
      "abort",
      () => {
        cancel();
        resolve();
      },
      { once: true },
    );
  });
}

/**
 * Answers that are given in advance, by step: each time one is needed the next of its list, the last again and again. Throws `FlowError`
 * INVALID_INPUT for one that does not fit.
 */
export function givenAnswers(
  answers: Readonly<Record<string, readonly LocalAnswer[]>>,
  otherwise: AnswerApproval = () => Promise.resolve(undefined),
): AnswerApproval {
  const used = new Map<string, number>();
  return async (question, signal) => {
    const { step, problem } = question;
    const list = own(answers, step) as readonly LocalAnswer[] | undefined;
    if (list === undefined) return await otherwise(question, signal);
    if (problem !== undefined)
      throw new FlowError("INVALID_INPUT", `The answer to the approval of step '${step}' cannot be taken: ${problem}`);
    const count = used.get(step) ?? 0;
    used.set(step, count + 1);
    return list[Math.min(count, list.length - 1)];
  };
}

/** What a `data` of an answer shows of its form, for a prompt: the fields that it asks for. */
export function fieldsOf({ form }: ApprovalRequest): { name: string; schema: Json; isRequired: boolean }[] {
  const properties = form === undefined ? undefined : own(form, "properties");
  const required = form === undefined ? undefined : own(form, "required");
  if (!isJsonObject(properties)) return [];
  return Object.entries(properties).map(([name, schema]) => ({
    ...{ name, schema },
    isRequired: Array.isArray(required) && required.includes(name),
  }));
}
