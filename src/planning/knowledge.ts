import type { Program, ProgramStep, ProgramTask } from "../engine/program/program.ts";
import { RESERVED_NAMES } from "../language/document/variables.ts";
import { nameScope } from "../language/template/names.ts";
import type { Needs } from "../language/template/needs.ts";
import { type Knowledge, looksSecret, type Rendered, renderKnown } from "../language/template/render-known.ts";
import { noReferences } from "../language/views/references.ts";
import { type JsonObject, own, setOwn } from "../schema/words/json.ts";
import type { Assignment, DeclaredInput } from "../schema/words/playbook.ts";
import { SECRET_MASK } from "../schema/words/sealed.ts";

/** What is known of one name before the run. */
type Fact = { waits_for: string[] } | { secret: true } | { known: true };

const KNOWN: Fact = { known: true };
const HIDDEN: Fact = { secret: true };

/** What is known of a playbook's inputs, whatever step reads them. */
export interface Inputs {
  program: Program;
  /** Workload with the request's inputs, masked: what the plan shows. */
  shown: Rendered;
  /** The request's inputs. */
  request: JsonObject;
  /** Values of the workload that are known and no secret. */
  workload: JsonObject;
  /** What is known of each workload key. */
  facts: ReadonlyMap<string, Fact>;
  /** Variables that some step, task or arc sets. */
  assigned: ReadonlySet<string>;
}

/** Renders the workload as a start would, default after default (language document, section 4.1). */
export function readInputs(program: Program, request: JsonObject): Inputs {
  const workload: JsonObject = {};
  const facts = new Map<string, Fact>();
  const inputs: Inputs = { program, request, workload, facts, assigned: assignedNames(program), shown: { value: {} } };
  const shown = { value: {}, unknown: [], secret: [], errors: [] } as Required<Rendered>;
  const keys = new Set([...program.workload.map(([key]) => key), ...Object.keys(request)]);
  for (const key of keys) {
    const given = own(request, key) as JsonObject[string] | undefined;
    const source = given ?? program.playbook.workload[key] ?? null;
    const declared = own(program.playbook.inputs ?? {}, key) as DeclaredInput | undefined;
    const isHidden = declared?.secret === true || looksSecret(key, source);
    // What the request gives is not rendered: a brace in it is a brace.
    const rendered = given === undefined ? renderKnown(source, startKnowledge(inputs, key)) : masked(given);
    facts.set(key, isHidden || rendered.secret !== undefined ? HIDDEN : waitsOf(rendered));
    setOwn(shown.value as JsonObject, key, isHidden ? SECRET_MASK : rendered.value);
    if (facts.get(key) === KNOWN) setOwn(workload, key, rendered.value);
    for (const { path, waits_for } of rendered.unknown ?? []) shown.unknown.push({ path: join(key, path), waits_for });
    for (const { path, message } of rendered.errors ?? []) shown.errors.push({ path: join(key, path), message });
    shown.secret.push(...(isHidden ? [key] : (rendered.secret ?? []).map((path) => join(key, path))));
  }
  const { unknown, secret, errors } = shown;
  inputs.shown = {
    value: shown.value,
    ...(unknown.length > 0 && { unknown }),
    ...(secret.length > 0 && { secret }),
    ...(errors.length > 0 && { errors }),
  };
  return inputs;
}

/** A given value with what looks secret in it masked; its texts are no templates. */
export function masked(value: JsonObject[string]): Rendered {
  const secret: string[] = [];
  const mask = (part: JsonObject[string], path: string): JsonObject[string] => {
    if (Array.isArray(part)) return part.map((item, index) => mask(item, `${path}[${index}]`));
    if (typeof part !== "object" || part === null) return part;
    const map: JsonObject = {};
    for (const key of Object.keys(part)) {
      const at = join(path, key);
      const inner = part[key] ?? null;
      if (looksSecret(key, inner)) secret.push(at);
      setOwn(map, key, looksSecret(key, inner) ? SECRET_MASK : mask(inner, at));
    }
    return map;
  };
  const shown = mask(value, "");
  return { value: shown, ...(secret.length > 0 && { secret }) };
}

function join(left: string, right: string): string {
  if (left === "" || right === "") return left + right;
  return right.startsWith("[") ? left + right : `${left}.${right}`;
}

function waitsOf(rendered: Rendered): Fact {
  const waits = (rendered.unknown ?? []).flatMap(({ waits_for }) => waits_for);
  if (rendered.errors !== undefined) waits.push("an error");
  return waits.length === 0 ? KNOWN : { waits_for: [...new Set(waits)] };
}

/** While the workload is rendered: the keys before, the request's inputs, and of the key itself only its input. */
function startKnowledge(inputs: Inputs, key: string): Knowledge {
  const fact = (name: string) => (name === key ? KNOWN : (inputs.facts.get(name) ?? KNOWN));
  const judgeName = (name: string, members: ReadonlySet<string> | "all" | undefined): Fact[] => {
    if (name === "env" || name === "keychain") return [HIDDEN];
    if (AT_START.has(name)) return [{ waits_for: [name] }];
    if (name !== "workload" && name !== "ctx") return [fact(name)];
    return members === "all" || members === undefined ? [...inputs.facts.values()] : [...members].map(fact);
  };
  return { judge: judgeWith(judgeName), scope: scopeOf(inputs, () => inputs.request) };
}

/** Known when the run starts, and not before. */
const AT_START: ReadonlySet<string> = new Set(["execution_id", "catalog_id", "parent_execution_id", "job"]);

/** Where a template stands: its step, and the inputs that are rendered before it. */
export interface TemplatePosition {
  step: ProgramStep;
  /** The step's inputs and the task's own so far, rendered; absent where none were. */
  own: Rendered;
  /** What `own` has is all that arrives: nothing comes over an arc. */
  complete: boolean;
  /** The template is a task's: it may read the iterator and the labels of tasks. */
  inTask: boolean;
}

/** What is known at one spot of a step (language document, section 4.9: the first that has a name gives its value). */
export function knowledgeAt(inputs: Inputs, position: TemplatePosition): Knowledge {
  const { step } = position;
  const { value: ownInput } = position.own;
  const local = position.inTask ? localNames(step) : new Set<string>();
  const ownFact = (name: string): Fact | undefined => {
    if (typeof ownInput !== "object" || ownInput === null || !Object.hasOwn(ownInput, name)) return undefined;
    const isPart = (path: string) => path === name || path.startsWith(`${name}.`) || path.startsWith(`${name}[`);
    if (position.own.secret?.some(isPart)) return HIDDEN;
    const waits = (position.own.unknown ?? []).filter(({ path }) => isPart(path)).flatMap(({ waits_for }) => waits_for);
    return waits.length === 0 ? KNOWN : { waits_for: [...new Set(waits)] };
  };
  const contextFact = (name: string): Fact => {
    if (inputs.assigned.has(name) || inputs.program.steps.has(name)) return { waits_for: [name] };
    return inputs.facts.get(name) ?? KNOWN;
  };
  const judgeName = (name: string, members: ReadonlySet<string> | "all" | undefined): Fact[] => {
    if (name === "env" || name === "keychain") return [HIDDEN];
    if (name === "spec") return [KNOWN];
    if (name === "workload" || name === "ctx") {
      const fact = name === "ctx" ? contextFact : (key: string) => inputs.facts.get(key) ?? KNOWN;
      if (members !== "all" && members !== undefined) return [...members].map(fact);
      return name === "ctx" ? [{ waits_for: ["ctx"] }, ...inputs.facts.values()] : [...inputs.facts.values()];
    }
    if ((name === "input" || name === "args") && position.complete)
      return [KNOWN, ...Object.keys(ownInput ?? {}).map(ownFact)].filter(isFact);
    if (name === "steps" && members !== "all" && members !== undefined) return [{ waits_for: [...members] }];
    if (RESERVED_NAMES.includes(name)) return [{ waits_for: [name] }];
    const known = ownFact(name);
    if (known !== undefined) return [known];
    return local.has(name) ? [{ waits_for: [name] }] : [contextFact(name)];
  };
  const ownValues = () => (typeof ownInput === "object" && ownInput !== null ? (ownInput as JsonObject) : {});
  return { judge: judgeWith(judgeName), scope: scopeOf(inputs, ownValues) };
}

function isFact(fact: Fact | undefined): fact is Fact {
  return fact !== undefined;
}

type JudgeName = (name: string, members: ReadonlySet<string> | "all" | undefined) => Fact[];

function judgeWith(judgeName: JudgeName): (needs: Needs) => { unknown: string[]; secret: boolean } {
  return (needs) => {
    const facts = [...needs.names].flatMap((name) => judgeName(name, needs.members.get(name)));
    const unknown = facts.flatMap((fact) => ("waits_for" in fact ? fact.waits_for : []));
    return { unknown: [...new Set(unknown)], secret: facts.some((fact) => "secret" in fact) };
  };
}

/** The known values alone: a secret is not even there to be leaked. */
function scopeOf(inputs: Inputs, input: () => JsonObject) {
  return nameScope({
    executionId: "",
    catalogId: "",
    workload: inputs.workload,
    vars: {},
    spec: inputs.program.playbook.spec,
    steps: { get: () => undefined, names: () => [] },
    references: noReferences,
    input,
    reserved: {},
  });
}

/** Names that stand for something else in each iteration or after each task: the iterator, labels, task variables. */
function localNames(step: ProgramStep): ReadonlySet<string> {
  const names = step.tasks.flatMap(({ task }) => [task.label, ...task.set.map(firstPart)]);
  const { loop } = step.step;
  return new Set(loop === undefined ? names : [...names, loop.iterator]);
}

function assignedNames(program: Program): ReadonlySet<string> {
  const ofTask = ({ task }: ProgramTask) => [
    ...task.set.filter(({ scope }) => scope === "ctx"),
    ...task.policy.flatMap((rule) => rule.set),
  ];
  const all = [...program.steps.values()].flatMap(({ step, tasks, arcs }) => [
    ...step.set,
    ...tasks.flatMap(ofTask),
    ...arcs.flatMap(({ arc }) => arc.set),
  ]);
  return new Set(all.map(firstPart));
}

function firstPart({ name }: Assignment): string {
  return name.split(".", 1)[0] ?? name;
}
