import { type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import type { StoredResult } from "../../schema/words/result.ts";
import type { References } from "../views/references.ts";
import { ResultView } from "../views/result-view.ts";
import type { Scope } from "../views/scope.ts";
import { View } from "../views/view.ts";

/** One iteration of a loop, as templates see it. */
export interface IterationNames {
  iterator: string;
  item: unknown;
  index: number;
  /** Undefined while a cursor does not know yet. */
  total?: number;
  /** Iteration names of the caller, where the loop runs inside another. */
  parent?: JsonObject;
  /** What `iter.x` assignments wrote. */
  written: JsonObject;
}

/** Everything that templates may name in one place of a run. Absent parts are names that mean nothing there. */
export interface Names {
  executionId: string;
  catalogId: string;
  parentExecutionId?: string;
  workload: JsonObject;
  vars: JsonObject;
  /** Writes that are not in `vars` yet and count before them. */
  pending?: JsonObject;
  spec: JsonObject;
  steps: { get(name: string): StoredResult | undefined; names(): Iterable<string> };
  references: References;
  /** Opens what is sealed in a value when it is looked up, where the values are sealed. Default: they are what they are. */
  open?<T>(value: T): T;
  /** Inputs by name. Called at the first use: rendering a step's own inputs may be what it does. */
  input: () => JsonObject;
  iteration?: IterationNames;
  /** Results of this step's tasks, by label. */
  tasks?: ReadonlyMap<string, StoredResult>;
  /** What a task's own `set` wrote, for the later tasks of the pipeline. */
  locals?: JsonObject;
  /** The step that led here. */
  from?: string;
  env?: JsonObject;
  /** Anything else that is reserved here: `output`, `event`, `_prev`, `_attempt`, `keychain`, `__frame_max_rows`, … */
  reserved: Readonly<Record<string, unknown>>;
}

/**
 * The scope of language document section 4.9: reserved, inputs, iteration, this step's tasks, variables, step results,
 * workload; the first hit wins. A reserved name without a value here is looked up further down.
 */
export function nameScope(names: Names): Scope {
  return {
    lookup: (name) => {
      const reserved = lookupReserved(names, name);
      return reserved === undefined ? lookupPlain(names, name) : reserved;
    },
    names: () => allNames(names),
  };
}

function lookupReserved(names: Names, name: string): unknown {
  const extra = own(names.reserved, name);
  if (extra !== undefined) return extra;
  switch (name) {
    case "execution_id":
      return names.executionId;
    case "catalog_id":
      return names.catalogId;
    case "job":
      return { uuid: names.executionId, id: names.executionId, execution_id: names.executionId };
    case "workload":
      return opened(names, names.workload);
    case "vars":
      return variables(names);
    case "ctx":
      return new ContextView(names);
    case "steps":
      return new StepsView(names);
    case "spec":
      return Object.keys(names.spec).length > 0 ? names.spec : undefined;
    case "iter":
      return names.iteration === undefined ? undefined : iterationFields(names.iteration);
    case "loop_index":
      return names.iteration?.index;
    case "input":
    case "args":
      return opened(names, names.input());
    case "env":
      return names.env;
    case "outcome":
      return own(names.reserved, "output");
    case "result":
    case "response":
      return names.from === undefined ? undefined : stepResult(names, names.from);
    case "parent_execution_id":
      return orElse(lookupPlain(names, name), () => names.parentExecutionId);
    default:
      return undefined;
  }
}

function lookupPlain(names: Names, name: string): unknown {
  const input = own(names.input(), name);
  if (input !== undefined) return opened(names, input);
  if (names.iteration?.iterator === name) return names.iteration.item;
  if (names.locals !== undefined) {
    const local = own(names.locals, name);
    if (local !== undefined) return local;
  }
  const task = names.tasks?.get(name);
  if (task !== undefined) return new ResultView(opened(names, task), names.references);
  return contextField(names, name);
}

/** A name in `ctx`: variables, step results, workload. */
function contextField(names: Names, name: string): unknown {
  const pending = names.pending === undefined ? undefined : own(names.pending, name);
  if (pending !== undefined) return pending;
  const variable = own(names.vars, name);
  if (variable !== undefined) return opened(names, variable);
  return orElse(stepResult(names, name), () => opened(names, own(names.workload, name)));
}

function opened<T>(names: Names, value: T): T {
  return names.open === undefined || value === undefined ? value : names.open(value);
}

/** Every variable with its newest value. */
function variables(names: Names): JsonObject {
  const { vars, pending, open } = names;
  if (open === undefined && (pending === undefined || Object.keys(pending).length === 0)) return vars;
  const merged: JsonObject = {};
  for (const key of Object.keys(vars)) setOwn(merged, key, opened(names, own(vars, key)));
  if (pending !== undefined) for (const key of Object.keys(pending)) setOwn(merged, key, own(pending, key));
  return merged;
}

/** The first value, even null; the second only where the first is undefined. */
function orElse(first: unknown, second: () => unknown): unknown {
  return first === undefined ? second() : first;
}

function stepResult(names: Names, name: string): ResultView | undefined {
  const stored = names.steps.get(name);
  return stored === undefined ? undefined : new ResultView(opened(names, stored), names.references);
}

/** `iter`: the iterator under its own name, where the iteration stands, and what was written to it. */
export function iterationFields(iteration: IterationNames): JsonObject {
  const { index, total } = iteration;
  const fields: Record<string, unknown> = {
    index,
    _index: index,
    _first: index === 0,
    _last: total === undefined ? null : index === total - 1,
    _total: total ?? null,
    parent: iteration.parent ?? null,
  };
  setOwn(fields, iteration.iterator, iteration.item);
  for (const key of Object.keys(iteration.written)) setOwn(fields, key, own(iteration.written, key));
  return fields as JsonObject;
}

/** `ctx`: one flat map over everything set, every step result and the workload. */
class ContextView extends View {
  readonly #names: Names;

  constructor(names: Names) {
    super();
    this.#names = names;
  }

  override get(key: string | number): unknown {
    return contextField(this.#names, String(key));
  }

  override plain(): unknown {
    const { workload, steps } = this.#names;
    const vars = variables(this.#names);
    const flat: Record<string, unknown> = {};
    for (const key of Object.keys(workload)) setOwn(flat, key, opened(this.#names, own(workload, key)));
    for (const name of steps.names()) setOwn(flat, name, stepResult(this.#names, name));
    for (const key of Object.keys(vars)) setOwn(flat, key, own(vars, key));
    return flat;
  }
}

/** `steps`: results by step name. */
class StepsView extends View {
  readonly #names: Names;

  constructor(names: Names) {
    super();
    this.#names = names;
  }

  override get(key: string | number): unknown {
    return stepResult(this.#names, String(key));
  }

  override plain(): unknown {
    const results: Record<string, unknown> = {};
    for (const name of this.#names.steps.names()) setOwn(results, name, stepResult(this.#names, name));
    return results;
  }
}

/** The reserved names, for hints and for code that asks for every name. */
const RESERVED = [
  "execution_id",
  "catalog_id",
  "parent_execution_id",
  "job",
  "workload",
  "vars",
  "ctx",
  "steps",
  "spec",
  "iter",
  "loop_index",
  "input",
  "args",
  "env",
  "outcome",
  "result",
  "response",
];

function* allNames(names: Names): Iterable<string> {
  yield* RESERVED;
  yield* Object.keys(names.reserved);
  yield* Object.keys(names.input());
  if (names.iteration !== undefined) yield names.iteration.iterator;
  if (names.locals !== undefined) yield* Object.keys(names.locals);
  if (names.tasks !== undefined) yield* names.tasks.keys();
  yield* Object.keys(names.vars);
  if (names.pending !== undefined) yield* Object.keys(names.pending);
  yield* names.steps.names();
  yield* Object.keys(names.workload);
}
