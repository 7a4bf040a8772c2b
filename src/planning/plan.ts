import { itemsOf } from "../engine/decide/activate.ts";
import { calledTask, type ProgramStep, type ProgramTask } from "../engine/program/program.ts";
import { credentialNames } from "../language/load/credential-names.ts";
import { type Knowledge, type Rendered, renderKnown } from "../language/template/render-known.ts";
import type { Condition } from "../language/template/template.ts";
import type { LocalPlaybook } from "../local/catalog.ts";
import { defined } from "../schema/words/defined.ts";
import { messageOf } from "../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../schema/words/json.ts";
import type { PolicyRule } from "../schema/words/playbook.ts";
import { type Inputs, knowledgeAt, masked, readInputs, type TemplatePosition } from "./knowledge.ts";
import type { Plan, PlannedCondition, PlannedLoop, PlannedStep, PlannedTask } from "./planned.ts";
import { type Machine, requirements } from "./requirements.ts";
import { type ArcVerdict, type Reachability, walkSteps } from "./walk.ts";

/** Plans a run of `playbook` with the request's inputs. Calls no tool: `machine` only says what exists. */
export async function planRun(playbook: LocalPlaybook, request: JsonObject, machine: Machine): Promise<Plan> {
  const { program, warnings } = playbook;
  const inputs = readInputs(program, request);
  const conditions = new Map([...program.steps.values()].map((step) => [step, conditionsOf(inputs, step)]));
  const walk = walkSteps(program, (step) => conditions.get(step)?.arcs.map(({ value }) => value) ?? []);
  const steps = walk.order.map((step) => {
    const name = step.step.name;
    const after = walk.before.get(name) ?? [];
    return planStep(
      inputs,
      step,
      { reached: walk.reach.get(name) ?? "yes", after, arcs: walk.arcs.get(name) ?? [] },
      conditions,
    );
  });
  const { executor, entryStep, name, path } = program.playbook;
  const anywhere = positionOf(inputs, walk.order[0], false);
  const knowledge = anywhere === undefined ? undefined : knowledgeAt(inputs, anywhere);
  return {
    file: playbook.file,
    path,
    name,
    entry_step: entryStep,
    ...defined({ final_step: executor.finalStep }),
    ...(executor.timeoutMs !== undefined &&
      knowledge !== undefined && { timeout_ms: renderKnown(executor.timeoutMs, knowledge) }),
    ...(executor.labels !== undefined &&
      knowledge !== undefined && { labels: renderKnown(executor.labels, knowledge) }),
    workload: inputs.shown,
    steps,
    ...(await requirements(playbook, steps, machine)),
    warnings,
  };
}

/** Where the templates of a step itself stand. Inputs of the request arrive at the entry, unless arcs lead there too. */
function positionOf(inputs: Inputs, step: ProgramStep | undefined, inTask: boolean): TemplatePosition | undefined {
  if (step === undefined) return undefined;
  const { playbook } = inputs.program;
  const isEntry = step.step.name === playbook.entryStep;
  const isTarget = playbook.steps.some(({ next }) => next.arcs.some((arc) => arc.step === step.step.name));
  const complete = isEntry && !isTarget;
  return { step, own: complete ? masked(inputs.request) : { value: {} }, complete, inTask };
}

interface StepConditions {
  guard: PlannedCondition | undefined;
  arcs: PlannedCondition[];
}

function conditionsOf(inputs: Inputs, step: ProgramStep): StepConditions {
  const position = positionOf(inputs, step, false);
  const before = position === undefined ? undefined : knowledgeAt(inputs, position);
  // After the step its labels may be read.
  const after = position === undefined ? undefined : knowledgeAt(inputs, { ...position, inTask: true });
  const arcs = step.arcs.map(({ when }) => (when === undefined || after === undefined ? ALWAYS : judge(when, after)));
  return { guard: step.when === undefined || before === undefined ? undefined : judge(step.when, before), arcs };
}

const ALWAYS: PlannedCondition = { when: true, value: true };

function judge(condition: Condition, knowledge: Knowledge): PlannedCondition {
  const when = condition.source;
  const { unknown, secret } = knowledge.judge(condition.needs);
  const waits = secret ? [...unknown, "a secret"] : unknown;
  if (waits.length > 0) return { when, waits_for: waits };
  let asksTime = false;
  const now = () => {
    asksTime = true;
    return 0;
  };
  try {
    const value = condition.test(knowledge.scope, { now });
    return asksTime ? { when, waits_for: ["now()"] } : { when, value };
  } catch (error) {
    return { when, error: messageOf(error) };
  }
}

function planStep(
  inputs: Inputs,
  step: ProgramStep,
  place: { reached: Reachability; after: string[]; arcs: ArcVerdict[] },
  conditions: ReadonlyMap<ProgramStep, StepConditions>,
): PlannedStep {
  const { name, desc, timeoutMs, set, next } = step.step;
  const { guard, arcs = [] } = conditions.get(step) ?? {};
  const position = positionOf(inputs, step, false) ?? { step, own: { value: {} }, complete: false, inTask: false };
  const knowledge = knowledgeAt(inputs, position);
  const input = renderKnown(step.step.input, knowledge);
  const inTask: TemplatePosition = { ...position, own: merged(position.own, input), inTask: true };
  return {
    name,
    ...defined({ desc }),
    reached: place.reached,
    after: place.after,
    ...defined({ guard }),
    ...(step.admit.length > 0 && { admit: admitRules(step, knowledge) }),
    ...(step.loop !== undefined && { loop: planLoop(step, knowledge) }),
    ...(hasFields(step.step.input) && { input }),
    tasks: step.tasks.map((task) => planTask(inputs, task, inTask)),
    ...(timeoutMs !== undefined && { timeout_ms: renderKnown(timeoutMs, knowledge) }),
    ...(set.length > 0 && { set: assignments(set) }),
    ...(next.arcs.length > 0 && {
      next: {
        mode: next.mode,
        arcs: step.arcs.map((arc, index) => {
          const when = arc.when === undefined ? undefined : arcs[index];
          const target = inputs.program.steps.get(arc.arc.step);
          const isBack = target !== undefined && inputs.program.graph.isBack(step.index, target.index);
          return {
            step: arc.arc.step,
            ...defined({ when }),
            fires: place.arcs[index] ?? "maybe",
            ...(isBack && { back: true as const }),
            ...(arc.arc.set.length > 0 && { set: assignments(arc.arc.set) }),
          };
        }),
      },
    }),
  };
}

function admitRules(step: ProgramStep, knowledge: Knowledge): NonNullable<PlannedStep["admit"]> {
  return step.admit.map(({ when, allow }) => ({
    ...(when !== undefined && { when: judge(when, knowledge) }),
    allow: judge(allow, knowledge),
  }));
}

function planLoop(step: ProgramStep, knowledge: Knowledge): PlannedLoop {
  const { mode = "sequential", iterator = "item", in: collection, cursor, maxInFlight } = step.step.loop ?? {};
  const rendered = collection === undefined ? undefined : renderKnown(collection, knowledge);
  const isKnown = rendered !== undefined && rendered.unknown === undefined && rendered.secret === undefined;
  return {
    mode,
    iterator,
    ...(maxInFlight !== undefined && { max_in_flight: renderKnown(maxInFlight, knowledge) }),
    ...(rendered !== undefined && (isKnown ? counted(rendered, step.step.name) : { in: rendered })),
    ...(cursor !== undefined && {
      cursor: {
        kind: cursor.kind,
        auth: credentialNames(cursor.auth === undefined ? undefined : renderKnown(cursor.auth, knowledge).value),
        claim: renderKnown(cursor.claim, knowledge),
      },
    }),
  };
}

function counted(collection: Rendered, step: string): Pick<PlannedLoop, "in" | "count"> {
  if (collection.errors !== undefined) return { in: collection };
  try {
    const found = itemsOf(collection.value, step);
    return { count: "count" in found ? found.count : found.items.length, in: collection };
  } catch (error) {
    return { in: { ...collection, errors: [{ path: "", message: messageOf(error) }] } };
  }
}

function planTask(inputs: Inputs, called: ProgramTask, position: TemplatePosition): PlannedTask {
  const tool = calledTask(inputs.program, called) ?? called;
  const input = renderKnown({ ...tool.task.input, ...called.task.input }, knowledgeAt(inputs, position));
  const knowledge = knowledgeAt(inputs, { ...position, own: merged(position.own, input) });
  const { label, policy, set, timeoutMs = tool.task.timeoutMs } = called.task;
  const auth = tool.task.auth === undefined ? undefined : renderKnown(tool.task.auth, knowledge).value;
  return {
    label,
    kind: tool.task.kind,
    config: renderKnown(tool.task.config, knowledge),
    ...(hasFields(input.value) && { input }),
    ...(auth !== undefined && { auth: credentialNames(auth) }),
    ...(timeoutMs !== undefined && { timeout_ms: renderKnown(timeoutMs, knowledge) }),
    policy: policy.map(ruleFields),
    ...(set.length > 0 && { set: assignments(set) }),
  };
}

/** Inputs over inputs: the later ones win by key, with what is known of each. */
function merged(first: Rendered, second: Rendered): Rendered {
  const over = isJsonObject(second.value) ? second.value : {};
  const under = isJsonObject(first.value) ? first.value : {};
  const isKept = (path: string) => own(over, path.split(/[.[]/, 1)[0] ?? path) === undefined;
  const unknown = [...(first.unknown ?? []).filter(({ path }) => isKept(path)), ...(second.unknown ?? [])];
  const secret = [...(first.secret ?? []).filter(isKept), ...(second.secret ?? [])];
  return { value: { ...under, ...over }, ...(unknown.length > 0 && { unknown }), ...(secret.length > 0 && { secret }) };
}

function hasFields(value: Json): boolean {
  return isJsonObject(value) && Object.keys(value).length > 0;
}

function assignments(list: readonly { scope: string; name: string; value: Json }[]): JsonObject {
  return Object.fromEntries(list.map(({ scope, name, value }) => [scope === "iter" ? `iter.${name}` : name, value]));
}

function ruleFields(rule: PolicyRule): JsonObject {
  const { set, ...fields } = rule;
  return { ...fields, ...(set.length > 0 && { set: assignments(set) }) } as JsonObject;
}
