import type { Rendered } from "../../../language/template/render-known.ts";
import type { RenderedTask } from "../../../schema/api/rendered.ts";
import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../../../schema/words/json.ts";
import { masked, maskedSource } from "./redact-values.ts";

/** Longest JSON of one task's rendered keys: a page has to show them. */
const RENDERED_CHARS_MAX = 262_144;

/** Collects the answer for one task. */
export interface ShownTask {
  /** An input passed by the arc. */
  arrived(key: string, value: Json): void;
  /** An input from a template; it replaces an earlier input with the same name. */
  input(key: string, source: Json, rendered: Rendered): void;
  /** One of the task's own keys; undefined: all remaining keys, as one map. */
  config(key: string | undefined, source: Json, rendered: Rendered): void;
  failed(message: string): void;
  end(): RenderedTask;
}

/** An empty answer. */
export function createShownTask(task: string, kind: string): ShownTask {
  const template: JsonObject = {};
  const rendered: JsonObject = {};
  const inputs: { template: JsonObject; rendered: JsonObject } = { template: {}, rendered: {} };
  let found: Required<Omit<Rendered, "value">> = { unknown: [], secret: [], errors: [] };

  const take = (prefix: string, { unknown = [], secret = [], errors = [] }: Rendered) => {
    found.unknown.push(...unknown.map(({ path, waits_for }) => ({ path: join(prefix, path), waits_for })));
    found.errors.push(...errors.map(({ path, message }) => ({ path: join(prefix, path), message })));
    found.secret.push(...secret.map((path) => join(prefix, path)));
  };
  return {
    arrived(key, value) {
      const secret: string[] = [];
      const held = masked({ [key]: value }, "input", secret) as JsonObject;
      setOwn(inputs.rendered, key, own(held, key));
      found.secret.push(...secret);
    },
    input(key, source, one) {
      found = without(found, `input.${key}`);
      setOwn(inputs.template, key, keyed(key, source));
      setOwn(inputs.rendered, key, one.value);
      take(`input.${key}`, one);
    },
    config(key, source, one) {
      if (key !== undefined) {
        setOwn(template, key, keyed(key, source));
        setOwn(rendered, key, one.value);
      } else if (isJsonObject(source) && isJsonObject(one.value)) {
        copy(maskedSource(source) as JsonObject, template);
        copy(one.value, rendered);
      }
      take(key ?? "", one);
    },
    failed: (message) => void found.errors.push({ path: "", message }),
    end() {
      if (Object.keys(inputs.template).length > 0) setOwn(template, "input", inputs.template);
      if (Object.keys(inputs.rendered).length > 0) setOwn(rendered, "input", inputs.rendered);
      return bounded({ task, kind, template, rendered, ...found });
    },
  };
}

function join(prefix: string, path: string): string {
  return prefix === "" || path === "" || path.startsWith("[") ? prefix + path : `${prefix}.${path}`;
}

/** The source text, without values under keys such as `password`. */
function keyed(key: string, source: Json): Json {
  return own(maskedSource({ [key]: source }) as JsonObject, key) as Json;
}

function copy(from: JsonObject, to: JsonObject): void {
  for (const key of Object.keys(from)) setOwn(to, key, own(from, key));
}

/** Nothing of a replaced value is shown. */
function without(found: Required<Omit<Rendered, "value">>, part: string): Required<Omit<Rendered, "value">> {
  const isOther = (path: string) => path !== part && !path.startsWith(`${part}.`) && !path.startsWith(`${part}[`);
  return {
    unknown: found.unknown.filter(({ path }) => isOther(path)),
    secret: found.secret.filter(isOther),
    errors: found.errors.filter(({ path }) => isOther(path)),
  };
}

function bounded(task: RenderedTask): RenderedTask {
  if (JSON.stringify(task.rendered).length <= RENDERED_CHARS_MAX) return task;
  const most = RENDERED_CHARS_MAX.toLocaleString("en");
  const message = `What its templates come to is longer than ${most} characters and is not shown`;
  return { ...task, rendered: null, errors: [...task.errors, { path: "", message }] };
}
