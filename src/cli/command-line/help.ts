import {
  type CliCommand,
  type CliEntry,
  type CliInput,
  type CliOption,
  type CommandGroup,
  EXIT,
  optionsOf,
} from "./command.ts";
import { descend, placeholder, unknownCommand } from "./parse.ts";

/** Widest help text; wider terminals do not make it easier to read. */
const COLUMNS_MAX = 120;
/** Narrowest column of explanations; below this a line is left to the terminal. */
const EXPLANATION_MIN = 24;

/** `flow help [command]…`. Throws `FlowError` USAGE for a command that does not exist. */
export async function printHelp({ arguments: words, io }: CliInput, groups: readonly CommandGroup[]): Promise<number> {
  const [name, ...inner] = words;
  if (name === undefined) {
    io.stdout.write(overview(groups, io.stdout));
    return EXIT.ok;
  }
  const commands = groups.flatMap((group) => group.commands);
  const entry = commands.find((candidate) => candidate.name === name);
  if (entry === undefined) throw unknownCommand(name, commands);
  const { found, path, rest } =
    inner.length === 0 ? { found: entry, path: name, rest: [] } : descend(entry, name, inner);
  if (rest[0] !== undefined && "commands" in found) throw unknownCommand(rest[0], found.commands, path);
  io.stdout.write(entryHelp(found, path, io.stdout));
  return EXIT.ok;
}

/** `flow --help`: what flow is, its commands, how to begin. */
export function overview(groups: readonly CommandGroup[], terminal: Terminal): string {
  const rows = groups.flatMap(({ commands }) => commands.map(({ name }) => name.length));
  const width = Math.max(...rows);
  const sections = groups.map(({ title, commands }) =>
    columns(
      title,
      commands.map(({ name, summary }) => [name, summary]),
      terminal,
      width,
    ),
  );
  return `flow runs playbooks: workflows written as YAML, whose steps call HTTP services, databases, Python code,
shell commands and other playbooks, with loops, retries and conditions. One program; no server is needed.

Usage: flow <command> [arguments] [options]

${sections.join("\n\n")}

Examples
  flow run hello.yaml                       run a playbook here and watch it
  flow validate playbooks                   check every document below a folder
  flow run load.yaml --set day=2026-01-31 --json | jq .result

'flow help <command>' explains a command. Documentation: README.md and docs/ of this package.
`;
}

/** `flow <command> --help`; `path` is the command's full name, such as `users add`. */
export function entryHelp(entry: CliEntry, path: string, terminal: Terminal): string {
  const options = optionsOf(entry);
  const words = "commands" in entry ? [entry.default === undefined ? "<command>" : "[command]"] : argumentWords(entry);
  const usage = ["flow", path, ...words, ...(options.length > 0 ? ["[options]"] : [])].join(" ");
  const rows: Row[] =
    "commands" in entry
      ? entry.commands.map((inner) => commandRow(inner, inner.name === entry.default))
      : entry.arguments.map(({ name, summary }) => [name, summary]);
  const optionRows = options.map((option): Row => [optionWords(option), optionSummary(option)]);
  const sections = [`${entry.summary}.`, `Usage: ${usage}`];
  if (rows.length > 0) sections.push(columns("commands" in entry ? "Commands" : "Arguments", rows, terminal));
  if (optionRows.length > 0) sections.push(columns("Options", optionRows, terminal));
  if (entry.details !== undefined) sections.push(entry.details);
  if ("commands" in entry) sections.push(`'flow help ${path} <command>' explains one of them.`);
  return `${sections.join("\n\n")}\n`;
}

function argumentWords(command: CliCommand): string[] {
  return command.arguments.map(placeholder);
}

function commandRow(entry: CliEntry, isDefault: boolean): Row {
  const words = "commands" in entry ? [`<${entry.commands.map(({ name }) => name).join("|")}>`] : argumentWords(entry);
  return [[entry.name, ...words].join(" "), isDefault ? `${entry.summary} (default)` : entry.summary];
}

function optionWords({ name, short, value }: CliOption): string {
  const long = value === undefined ? `--${name}` : `--${name} ${value}`;
  return short === undefined ? long : `-${short}, ${long}`;
}

function optionSummary({ summary, choices }: CliOption): string {
  return choices === undefined ? summary : `${summary} (${choices.join(", ")})`;
}

/** Where help is printed; `columns` is absent for files and pipes. */
type Terminal = { columns?: number };
/** A line of {@link columns}. */
export type Row = readonly [left: string, right: string];

/** A heading and two columns; explanations wrap within theirs. */
export function columns(title: string, rows: readonly Row[], terminal: Terminal, least = 0): string {
  const width = Math.max(least, ...rows.map(([left]) => left.length));
  const room = Math.min(terminal.columns ?? COLUMNS_MAX, COLUMNS_MAX) - width - 4;
  const lines = rows.map(([left, right]) => {
    const wrapped = room < EXPLANATION_MIN ? [right] : wrap(right, room);
    return `  ${left.padEnd(width)}  ${wrapped.join(`\n${" ".repeat(width + 4)}`)}`;
  });
  return [title, ...lines].join("\n");
}

/** Breaks a text at spaces into lines of at most `width` characters; a longer word has a line of its own. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
