import { parseArgs } from "node:util";
import { nearest } from "../../language/words/nearest.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { CliArgument, CliCommand, CliOption, CliValues } from "./command.ts";

/** What a command line says to its command. */
export interface ParsedWords {
  arguments: string[];
  options: CliValues;
  /** `--help` or `-h` stood somewhere: explain the command, whatever else is there. */
  help: boolean;
}

const HELP: CliOption = { name: "help", summary: "Explain this command" };

/**
 * Reads the words after a command's name by the command's definition. Options may stand before, between and after
 * arguments, as `--name value` or `--name=value`; after `--` everything is an argument.
 *
 * Throws `FlowError` USAGE that names the word, what was expected, and the nearest known name.
 */
export function parseWords(command: CliCommand, words: readonly string[]): ParsedWords {
  const known = new Map([...command.options, HELP].map((option) => [option.name, option]));
  const { tokens } = parseArgs({
    args: [...words],
    options: Object.fromEntries([...known.values()].map((option) => [option.name, shapeOf(option)])),
    allowPositionals: true,
    // Its own errors name the functions of Node: what is wrong is told here.
    strict: false,
    tokens: true,
  });
  const values = new Map<string, string | boolean | string[]>();
  const given: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") given.push(token.value);
    if (token.kind !== "option") continue;
    if (token.rawName === "-h") return { arguments: [], options: {}, help: true };
    const named = known.get(token.name);
    const option = token.rawName.startsWith("--") || token.rawName === `-${named?.short}` ? named : undefined;
    if (option === undefined) throw unknownOption(command, token.rawName, known.keys());
    if (option === HELP) return { arguments: [], options: {}, help: true };
    addValue(values, command, option, token);
  }
  checkArguments(command, given);
  return { arguments: given, options: Object.fromEntries(values), help: false };
}

function shapeOf({ value, short }: CliOption): { type: "string" | "boolean"; short?: string } {
  return { type: value === undefined ? "boolean" : "string", ...(short !== undefined && { short }) };
}

function addValue(
  values: Map<string, string | boolean | string[]>,
  command: CliCommand,
  option: CliOption,
  token: { value: string | undefined; inlineValue: boolean | undefined },
): void {
  const name = `--${option.name}`;
  if (option.value === undefined) {
    if (token.value !== undefined) throw usage(command, `${name} is a switch and takes no value, got '${token.value}'`);
    values.set(option.name, true);
    return;
  }
  let { value } = token;
  // `--target --json` is a forgotten value, not a step called '--json'; an empty one comes from a variable that is not set.
  if (value === undefined || value.trim() === "" || (token.inlineValue !== true && value.startsWith("--"))) {
    throw usage(command, `${name} needs a value: ${name} ${option.value}`);
  }
  if (option.choices !== undefined) value = choiceOf(command, name, value, option.choices);
  const before = values.get(option.name);
  if (option.many === true) values.set(option.name, [...(Array.isArray(before) ? before : []), value]);
  else if (before === undefined) values.set(option.name, value);
  else throw usage(command, `${name} was given twice; which one is meant?`);
}

/** The choice that is meant: `failed` and `FAILED` are the same word. */
function choiceOf(command: CliCommand, name: string, value: string, choices: readonly string[]): string {
  const choice = choices.find((candidate) => candidate.toLowerCase() === value.toLowerCase());
  if (choice === undefined) throw notAChoice(command, name, value, choices);
  return choice;
}

function checkArguments(command: CliCommand, given: readonly string[]): void {
  const { arguments: expected } = command;
  const missing = expected.find((argument, index) => argument.optional !== true && index >= given.length);
  if (missing !== undefined) {
    throw usage(command, `'flow ${command.name}' needs ${placeholder(missing)}: ${lowerFirst(missing.summary)}`);
  }
  const last = expected.at(-1);
  for (const [index, word] of given.entries()) {
    const argument = expected[index] ?? (last?.many === true ? last : undefined);
    if (argument === undefined) throw usage(command, `'flow ${command.name}' does not take '${word}'`);
    if (word.trim() === "") throw usage(command, `${placeholder(argument)} is empty: is a variable not set?`);
    if (argument.choices?.includes(word) === false) throw notAChoice(command, argument.name, word, argument.choices);
  }
}

/** An argument as it stands in usage lines: `<file>…`, `[command]`. */
export function placeholder(argument: CliArgument): string {
  const name = argument.optional === true ? `[${argument.name}]` : `<${argument.name}>`;
  return argument.many === true ? `${name}…` : name;
}

/** The error for a name that no command has. */
export function unknownCommand(word: string, commands: readonly CliCommand[]): FlowError {
  const names = commands.map((command) => command.name);
  const near = nearest(word, names);
  const hint = near === undefined ? `The commands are: ${names.join(", ")}` : `Did you mean 'flow ${near}'?`;
  return new FlowError("USAGE", `There is no command '${word}'. ${hint}`);
}

function unknownOption(command: CliCommand, raw: string, names: Iterable<string>): FlowError {
  const near = nearest(raw.replace(/^-+/, ""), names);
  return usage(command, `Unknown option ${raw}${near === undefined ? "" : `, did you mean --${near}?`}`);
}

function notAChoice(command: CliCommand, what: string, word: string, choices: readonly string[]): FlowError {
  const near = nearest(word, choices);
  const hint = near === undefined ? "" : `, did you mean '${near}'?`;
  return usage(command, `${what} must be one of ${choices.join(", ")}, got '${word}'${hint}`);
}

function usage(command: CliCommand, message: string): FlowError {
  return new FlowError("USAGE", `${message}\nSee 'flow ${command.name} --help'.`);
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
