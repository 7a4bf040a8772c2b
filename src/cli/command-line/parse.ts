import { parseArgs } from "node:util";
import { nearest } from "../../language/words/nearest.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import {
  type CliArgument,
  type CliCommand,
  type CliEntry,
  type CliOption,
  type CliValues,
  optionsOf,
} from "./command.ts";

/** A command line that was understood. */
export type ParsedLine =
  | { command: CliCommand; arguments: string[]; options: CliValues }
  /** `--help` or `-h` was given: explain this entry; `path` is its full name, such as `users add`, `words` came before. */
  | { help: CliEntry; path: string; words: string[] };

const HELP: CliOption = { name: "help", short: "h", summary: "Explain this command" };

/**
 * Parses the words after an entry's name. Options may stand before, between and after arguments, as `--name value` or
 * `--name=value`; after `--` every word is an argument.
 *
 * Throws `FlowError` USAGE that names the word, what was expected, and the nearest known name.
 */
export function parseLine(entry: CliEntry, words: readonly string[]): ParsedLine {
  const known = new Map([...optionsOf(entry), HELP].map((option) => [option.name, option]));
  const { tokens } = parseArgs({
    args: [...words],
    options: Object.fromEntries([...known.values()].map((option) => [option.name, shapeOf(option)])),
    allowPositionals: true,
    // Node's own error messages name its functions; the checks here give better ones.
    strict: false,
    tokens: true,
  });
  const values: OptionValues = new Map();
  const given: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") given.push(token.value);
    if (token.kind !== "option") continue;
    const named = known.get(token.name);
    const option = token.rawName.startsWith("--") || token.rawName === `-${named?.short}` ? named : undefined;
    if (option === undefined) throw unknownOption(entry.name, token.rawName, known.keys());
    if (option === HELP) return helpFor(entry, given);
    addValue(values, entry.name, option, token);
  }
  const { found, path, rest } = descend(entry, entry.name, given);
  if ("commands" in found) throw missingCommand(found, path, rest[0]);
  checkOptions(entry, found, path, values);
  checkArguments(found, path, rest);
  return { command: found, arguments: rest, options: Object.fromEntries(values) };
}

type OptionValues = Map<string, string | boolean | string[]>;

function shapeOf({ value, short }: CliOption): { type: "string" | "boolean"; short?: string } {
  return { type: value === undefined ? "boolean" : "string", ...defined({ short }) };
}

/** Follows words down the sets of commands; stops at a command, or at a set without a command of that name. */
export function descend(
  entry: CliEntry,
  path: string,
  words: readonly string[],
): { found: CliEntry; path: string; rest: string[] } {
  if (!("commands" in entry)) return { found: entry, path, rest: [...words] };
  const [word = entry.default, ...rest] = words;
  const next = entry.commands.find(({ name }) => name === word);
  return next === undefined ? { found: entry, path, rest: [...words] } : descend(next, `${path} ${next.name}`, rest);
}

/** `flow users --help` explains the whole set, not its default command. */
function helpFor(entry: CliEntry, words: readonly string[]): ParsedLine {
  if (words.length === 0) return { help: entry, path: entry.name, words: [] };
  const { found, path, rest } = descend(entry, entry.name, words);
  return { help: found, path, words: rest };
}

function addValue(
  values: OptionValues,
  path: string,
  option: CliOption,
  token: { value: string | undefined; inlineValue: boolean | undefined },
): void {
  const name = `--${option.name}`;
  if (option.value === undefined) {
    if (token.value !== undefined) throw usage(path, `${name} is a switch and takes no value, got '${token.value}'`);
    values.set(option.name, true);
    return;
  }
  let { value } = token;
  // `--target --json` is a forgotten value, not a step named '--json'. An empty value is usually an unset variable.
  if (value === undefined || value.trim() === "" || (token.inlineValue !== true && value.startsWith("--"))) {
    throw usage(path, `${name} needs a value: ${name} ${option.value}`);
  }
  if (option.choices !== undefined) value = choiceOf(path, name, value, option.choices);
  const before = values.get(option.name);
  if (option.many === true) values.set(option.name, [...(Array.isArray(before) ? before : []), value]);
  else if (before === undefined) values.set(option.name, value);
  else throw usage(path, `${name} was given twice; give it once`);
}

/** The matching choice; upper and lower case are the same. */
function choiceOf(path: string, name: string, value: string, choices: readonly string[]): string {
  const choice = choices.find((candidate) => candidate.toLowerCase() === value.toLowerCase());
  if (choice === undefined) throw notAChoice(path, name, value, choices);
  return choice;
}

/** Options are parsed by the whole set's definitions; each must belong to the command that was chosen. */
function checkOptions(entry: CliEntry, command: CliCommand, path: string, values: OptionValues): void {
  for (const name of values.keys()) {
    if (command.options.some((option) => option.name === name)) continue;
    const owners = ownersOf(entry, entry.name, name).map((owner) => `'flow ${owner}'`);
    throw usage(path, `'flow ${path}' does not take --${name}; it goes with ${owners.join(", ")}`);
  }
}

function ownersOf(entry: CliEntry, path: string, option: string): string[] {
  if ("commands" in entry) return entry.commands.flatMap((inner) => ownersOf(inner, `${path} ${inner.name}`, option));
  return entry.options.some(({ name }) => name === option) ? [path] : [];
}

function checkArguments(command: CliCommand, path: string, given: readonly string[]): void {
  const { arguments: expected, surplusOption } = command;
  const missing = expected.find((argument, index) => argument.optional !== true && index >= given.length);
  if (missing !== undefined) {
    throw usage(path, `'flow ${path}' needs ${placeholder(missing)}: ${lowerFirst(missing.summary)}`);
  }
  const last = expected.at(-1);
  for (const [index, word] of given.entries()) {
    const argument = expected[index] ?? (last?.many === true ? last : undefined);
    if (argument === undefined) {
      const hint = surplusOption === undefined ? "" : `; did you mean --${surplusOption} ${word}?`;
      throw usage(path, `'flow ${path}' does not take '${word}'${hint}`);
    }
    if (word.trim() === "") throw usage(path, `${placeholder(argument)} is empty: is a variable not set?`);
    if (argument.choices?.includes(word) === false) throw notAChoice(path, argument.name, word, argument.choices);
  }
}

/** An argument as shown in usage lines: `<file>…`, `[command]`. */
export function placeholder(argument: CliArgument): string {
  const name = argument.optional === true ? `[${argument.name}]` : `<${argument.name}>`;
  return argument.many === true ? `${name}…` : name;
}

/** The error for a name that no command has; `path` is the set that it was looked for in. */
export function unknownCommand(word: string, commands: readonly CliEntry[], path = ""): FlowError {
  const names = commands.map(({ name }) => name);
  const near = nearest(word, names);
  const prefix = path === "" ? "" : `${path} `;
  const hint = near === undefined ? `The commands are: ${names.join(", ")}` : `Did you mean 'flow ${prefix}${near}'?`;
  return new FlowError("USAGE", `There is no command '${prefix}${word}'. ${hint}`);
}

function missingCommand({ commands }: { commands: readonly CliEntry[] }, path: string, word?: string): FlowError {
  if (word !== undefined) return unknownCommand(word, commands, path);
  return usage(path, `'flow ${path}' needs a command: ${commands.map(({ name }) => name).join(", ")}`);
}

function unknownOption(path: string, raw: string, names: Iterable<string>): FlowError {
  const near = nearest(raw.replace(/^-+/, ""), names);
  return usage(path, `Unknown option ${raw}${near === undefined ? "" : `, did you mean --${near}?`}`);
}

function notAChoice(path: string, what: string, word: string, choices: readonly string[]): FlowError {
  const near = nearest(word, choices);
  const hint = near === undefined ? "" : `, did you mean '${near}'?`;
  return usage(path, `${what} must be one of ${choices.join(", ")}, got '${word}'${hint}`);
}

function usage(path: string, message: string): FlowError {
  return new FlowError("USAGE", `${message}\nSee 'flow ${path} --help'.`);
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
