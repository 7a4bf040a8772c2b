import { messageOf } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, setOwn } from "../../schema/words/json.ts";
import { SECRET_MASK } from "../../schema/words/sealed.ts";
import type { Limits } from "../expression/parsing/budget.ts";
import { ReferenceNeeded } from "../views/references.ts";
import type { Scope } from "../views/scope.ts";
import { WithheldRead } from "../views/withheld.ts";
import type { Needs } from "./needs.ts";
import { scan } from "./segments.ts";
import { compileTemplate, type Template } from "./template.ts";

/** The known parts of a value, before a run or after it. Texts that wait for a value stay as written. */
export interface Rendered {
  value: Json;
  /** Places that cannot be filled, mostly because only the run can, and the names that they wait for. */
  unknown?: { path: string; waits_for: string[] }[];
  /** Places whose value is masked. */
  secret?: string[];
  /** Places that would fail. */
  errors?: { path: string; message: string }[];
}

/** What can be said of the names that a template reads. */
export interface Knowledge {
  /** Names whose value only the run gives, and whether a secret is among those read. What the scope withholds it need not name. */
  judge(needs: Needs): { unknown: string[]; secret: boolean };
  /** The values of the known names. A secret one is not in it, or withheld. */
  scope: Scope;
  /** Of one text; default: those of a run. */
  limits?: Partial<Limits>;
}

/** Renders what is known, text by text and within a text expression by expression; masks what is secret. */
export function renderKnown(source: Json, knowledge: Knowledge): Rendered {
  const rendered = { unknown: [], secret: [], errors: [] };
  const value = renderValue(source, "", { knowledge, rendered });
  return trim({ value, ...rendered });
}

/** Without the lists that are empty. */
function trim(rendered: Required<Rendered>): Rendered {
  const { value, unknown, secret, errors } = rendered;
  return {
    value,
    ...(unknown.length > 0 && { unknown }),
    ...(secret.length > 0 && { secret }),
    ...(errors.length > 0 && { errors }),
  };
}

interface Rendering {
  knowledge: Knowledge;
  rendered: Required<Omit<Rendered, "value">>;
}

function renderValue(source: Json, path: string, rendering: Rendering): Json {
  if (typeof source === "string") return renderText(source, path, rendering);
  if (Array.isArray(source)) return source.map((item, index) => renderValue(item, `${path}[${index}]`, rendering));
  if (!isJsonObject(source)) return source;
  const map: JsonObject = {};
  for (const key of Object.keys(source)) {
    const at = path === "" ? key : `${path}.${key}`;
    const value = source[key] ?? null;
    if (looksSecret(key, value)) rendering.rendered.secret.push(at);
    setOwn(map, key, looksSecret(key, value) ? SECRET_MASK : renderValue(value, at, rendering));
  }
  return map;
}

/**
 * True for a text under a key that usually holds a secret. What is masked for sure is what comes from a credential, the
 * keychain or the environment; this is for those who wrote one into the document or gave it as an input.
 */
export function looksSecret(key: string, value: Json): boolean {
  return isSecretText(key, value) && compileTemplate(value).constant;
}

/** The same of a value that is no template, whatever braces are in it. */
export function isSecretText(key: string, value: Json): value is string {
  return typeof value === "string" && value !== "" && SECRET_KEY.test(key);
}

const SECRET_KEY =
  /(^|[_-])(password|passwd|passphrase|secret|token|api[_-]?key|private[_-]?key|authorization|cookie)$/i;

function renderText(source: string, path: string, rendering: Rendering): Json {
  const whole = compileTemplate(source);
  if (whole.constant) return source;
  const { segments } = scan(source);
  const isWhole = segments.length === 1 && segments[0]?.source === source.trim();
  // The text after a tag depends on the tag: such a text is known as a whole, or not at all.
  if (isWhole || segments.some(({ kind }) => kind === "tag")) return renderPart(whole, source, path, rendering);
  const parts = segments.map((segment) => {
    if (segment.kind !== "output") return segment.source;
    // With a character before it, it is text with an expression in it, and so its value is formatted as text.
    const text = renderPart(compileTemplate(`.${segment.source}`), `.${segment.source}`, path, rendering);
    return text === SECRET_MASK ? SECRET_MASK : String(text).slice(1);
  });
  return parts.join("");
}

function renderPart(template: Template, source: string, path: string, rendering: Rendering): Json {
  const { knowledge, rendered } = rendering;
  const { unknown, secret } = knowledge.judge(template.needs);
  if (secret) return masked(path, rendered);
  if (unknown.length > 0) return waiting(source, path, unknown, rendered);
  const needed = { time: false, token: false };
  const now = () => {
    needed.time = true;
    return 0;
  };
  const token = () => {
    needed.token = true;
    return SECRET_MASK;
  };
  try {
    const { scope, limits } = knowledge;
    const value = template.render(scope, { now, token, ...(limits !== undefined && { limits }) });
    if (needed.token) return masked(path, rendered);
    return needed.time ? waiting(source, path, ["now()"], rendered) : value;
  } catch (error) {
    if (error instanceof WithheldRead) {
      return error.why === "secret" ? masked(path, rendered) : waiting(source, path, [...error.why], rendered);
    }
    if (error instanceof ReferenceNeeded) return waiting(source, path, ["a stored result"], rendered);
    rendered.errors.push({ path, message: messageOf(error) });
    return source;
  }
}

function masked(path: string, { secret }: Rendering["rendered"]): string {
  if (!secret.includes(path)) secret.push(path);
  return SECRET_MASK;
}

function waiting(source: string, path: string, names: string[], { unknown }: Rendering["rendered"]): string {
  const known = unknown.find((entry) => entry.path === path);
  if (known === undefined) unknown.push({ path, waits_for: names });
  else known.waits_for = [...new Set([...known.waits_for, ...names])];
  return source;
}
