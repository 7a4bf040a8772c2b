import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { readBytes } from "../../local/catalog.ts";
import type { Config } from "../../platform/config/config.ts";
import { labelsProblem } from "../../schema/rules/execution-labels.ts";
import type { Signal } from "../../schema/words/command.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import { type CliValues, listOption, textOption } from "../command-line/command.ts";

/**
 * The inputs from `--workload`, or another option that gives all of them, and `--set`; `--set` takes precedence. Relative files start at
 * `folder`. Throws `FlowError` USAGE for invalid input, FILE_UNREADABLE for a file that cannot be read.
 */
export async function readInputs(options: CliValues, folder: string, whole = "workload"): Promise<JsonObject> {
  const given = textOption(options, whole);
  const inputs = given === undefined ? {} : await readMap(given, folder, whole);
  for (const assignment of listOption(options, "set")) applySet(inputs, assignment);
  return inputs;
}

/** Labels from `--label`, later ones over earlier ones; undefined without any. Throws `FlowError` USAGE for what is none. */
export function labelsOf(options: CliValues): Record<string, string> | undefined {
  const given = listOption(options, "label");
  if (given.length === 0) return undefined;
  const labels: Record<string, string> = {};
  for (const text of given) {
    const at = text.indexOf("=");
    if (at < 1) throw new FlowError("USAGE", `--label takes NAME=VALUE, got '${text}'`);
    setOwn(labels, text.slice(0, at), text.slice(at + 1));
  }
  const problem = labelsProblem(labels);
  if (problem !== undefined) throw new FlowError("USAGE", `The run ${problem}`);
  return labels;
}

/** Signals from `--signal`, in their order. Throws `FlowError` USAGE for what is none. */
export function signalsOf(options: CliValues): Signal[] {
  return listOption(options, "signal").map((text) => {
    const [, name = "", key, json] = /^([^[=]+)(?:\[([^\]]+)\])?(?:=(.*))?$/s.exec(text) ?? [];
    const expected = `--signal takes NAME=JSON or NAME[KEY]=JSON, as in --signal 'payment={"amount": 12}'; got '${text}'`;
    if (name.trim() === "") throw new FlowError("USAGE", expected);
    return { name, data: json === undefined ? null : jsonOf(json, expected), ...defined({ key }) };
  });
}

function jsonOf(text: string, expected: string): Json {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new FlowError("USAGE", expected, { cause });
  }
}

/** The files that a command line names for reading, the playbook's first: what is written must not be one of them. */
export function filesRead(playbook: string | undefined, options: CliValues, folder: string): string[] {
  const workload = textOption(options, "workload");
  const named = [
    playbook,
    workload?.startsWith("@") === true ? workload.slice(1) : undefined,
    textOption(options, "credentials"),
  ];
  return named.filter((file) => file !== undefined).map((file) => resolve(folder, file));
}

/**
 * The credentials file of a run or a plan: the one that `--credentials` names, else that of FLOW_CREDENTIALS_FILE. Throws
 * `FlowError` FILE_UNREADABLE if the named file cannot be read, before any task needs it.
 */
export async function credentialsFile(config: Config, options: CliValues, folder: string): Promise<string | undefined> {
  const named = textOption(options, "credentials");
  if (named === undefined) return config.credentialsFile;
  const file = resolve(folder, named);
  await readBytes(file);
  return file;
}

/** A map of inputs that an option gives as JSON, or in a file. Throws as {@link readInputs} does. */
export async function readMap(text: string, folder: string, option: string): Promise<JsonObject> {
  const value = await readJson(text, folder, option, "Expected one object, as in");
  if (isJsonObject(value)) return value;
  throw new FlowError(
    "USAGE",
    `${whereOf(text, option)} must be one JSON object of inputs by name, got ${nameOfKind(value)}`,
  );
}

/** A value that an option gives as JSON, or in a file (`@FILE`). Throws as {@link readInputs} does. */
export async function readJson(text: string, folder: string, option: string, expected = "As in"): Promise<Json> {
  const where = whereOf(text, option);
  const json = text.startsWith("@") ? await readText(resolve(folder, text.slice(1)), where) : text;
  try {
    return JSON.parse(json);
  } catch (cause) {
    const example = `${expected} --${option} '{"day": "2026-01-31"}', or @FILE with one in it`;
    throw new FlowError("USAGE", `${where} is not JSON: ${messageOf(cause)}. ${example}`, { cause });
  }
}

function whereOf(text: string, option: string): string {
  return text.startsWith("@") ? `--${option} ${text}` : `--${option}`;
}

async function readText(file: string, where: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw new FlowError("FILE_UNREADABLE", `Cannot read the file of ${where}: ${messageOf(cause)}`, { cause });
  }
}

/** Applies one `a.b=value`, in place. What was a map stays one and gains a key. Throws `FlowError` USAGE. */
export function applySet(inputs: JsonObject, assignment: string, option = "set"): void {
  const equals = assignment.indexOf("=");
  const path = equals < 0 ? [] : assignment.slice(0, equals).trim().split(".");
  if (path.length === 0 || path.includes("")) {
    throw new FlowError(
      "USAGE",
      `--${option} needs KEY=VALUE, as in --${option} day=2026-01-31 or --${option} db.port=5433; got '${assignment}'`,
    );
  }
  const last = path.pop() ?? "";
  let map = inputs;
  for (const [index, key] of path.entries()) {
    const inner = own(map, key) ?? {};
    if (!isJsonObject(inner)) {
      const name = path.slice(0, index + 1).join(".");
      throw new FlowError(
        "USAGE",
        `--${option} ${assignment}: '${name}' is ${nameOfKind(inner)} already, it cannot hold '${last}'`,
      );
    }
    setOwn(map, key, inner);
    map = inner;
  }
  setOwn(map, last, parseValue(assignment.slice(equals + 1)));
}

/** JSON where it is JSON, else the text itself. A whole number that would lose digits stays text. */
function parseValue(text: string): Json {
  try {
    const value: Json = JSON.parse(text);
    const losesDigits =
      typeof value === "number" && (!Number.isFinite(value) || Math.abs(value) > Number.MAX_SAFE_INTEGER);
    return losesDigits ? text : value;
  } catch {
    return text;
  }
}

function nameOfKind(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return typeof value === "string" ? "a text" : `a ${typeof value}`;
}
