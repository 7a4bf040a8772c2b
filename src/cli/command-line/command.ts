/** One option of a command, `--name` on the command line. */
export interface CliOption {
  name: string;
  /** One-letter form, `-f`. */
  short?: string;
  /** Placeholder of its value in the help text. Absent: the option is a switch. */
  value?: string;
  /** May be given more than once. */
  many?: true;
  summary: string;
  /** The allowed values, in upper or lower case. Used by completion and error messages. */
  choices?: readonly string[];
}

/** A positional argument. */
export interface CliArgument {
  name: string;
  summary: string;
  optional?: true;
  /** Takes all following words. */
  many?: true;
  /** The allowed words. Used by completion and error messages. */
  choices?: readonly string[];
  /** What completion offers. */
  complete?: "file" | "command";
}

/** What commands and sets of commands have in common. */
interface CliEntryBase {
  name: string;
  /** One line. */
  summary: string;
  /** Further help: what it does, exit codes, examples. */
  details?: string;
  /** Exit code of every failure except an interruption. Default: by the error, see {@link EXIT}. */
  failureExit?: number;
}

/** One command: `--help`, completion and parsing are made from it. */
export interface CliCommand extends CliEntryBase {
  arguments: readonly CliArgument[];
  options: readonly CliOption[];
  /** Option suggested for a surplus word, in the error message. */
  surplusOption?: string;
  /** Loads what `--help` says about the words before it, such as the inputs of a playbook that is named. */
  explain?(): Promise<(words: readonly string[], io: CliIo) => Promise<string>>;
  /** Loads the code that runs it. Loaded only then, so that `flow --help` and short runs stay quick. */
  load(): Promise<CliAction>;
}

/** Commands under one name, chosen by the next word: `flow users add`. */
export interface CliCommandSet extends CliEntryBase {
  commands: readonly CliEntry[];
  /** Name of the command that runs when no word names one. */
  default?: string;
}

/** What a name on the command line stands for. */
export type CliEntry = CliCommand | CliCommandSet;

/** Runs a command and gives its exit code. */
export type CliAction = (input: CliInput) => Promise<number>;

/**
 * Gives a function that defines commands which one lazily loaded module runs. Each command takes the `common` options
 * after its own.
 */
export function commandsOf<Name extends string>(
  load: () => Promise<Readonly<Record<Name, CliAction>>>,
  common: readonly CliOption[],
) {
  return (
    name: Name,
    summary: string,
    words: readonly CliArgument[] = [],
    options: readonly CliOption[] = [],
  ): CliCommand => ({
    ...{ name, summary, arguments: words, options: [...options, ...common] },
    load: async () => (await load())[name],
  });
}

/** Every option of a command, or of all commands of a set, each once. */
export function optionsOf(entry: CliEntry): CliOption[] {
  if (!("commands" in entry)) return [...entry.options];
  const all = entry.commands.flatMap(optionsOf);
  // Of two with the same name the first is kept: within a set they mean the same.
  return [...new Map(all.reverse().map((option) => [option.name, option])).values()].reverse();
}

/** A heading of `flow --help` and the commands beneath it. */
export interface CommandGroup {
  title: string;
  commands: readonly CliEntry[];
}

/** What a command is given. */
export interface CliInput {
  /** The words after the command's name, those that name a command of a set left out. */
  arguments: string[];
  options: CliValues;
  io: CliIo;
}

/** Parsed options: switches are booleans, repeatable options are lists. */
export type CliValues = Readonly<Record<string, string | boolean | string[] | undefined>>;

/** The process as a command sees it. */
export interface CliIo {
  stdout: NodeJS.WritableStream & { isTTY?: boolean; columns?: number };
  stderr: NodeJS.WritableStream & { isTTY?: boolean; columns?: number; rows?: number };
  /** Absent if no one can answer a question. */
  stdin?: NodeJS.ReadableStream & { isTTY?: boolean };
  environment: Readonly<NodeJS.ProcessEnv>;
  folder: string;
  /** Aborted by Ctrl-C (SIGINT) or SIGTERM. */
  signal: AbortSignal;
}

/** Exit codes of every command. */
export const EXIT = {
  ok: 0,
  /** The run, or a test, failed. */
  failed: 1,
  /** Invalid document, or the command line was not understood. */
  usage: 2,
  /** Cancelled by Ctrl-C. */
  cancelled: 130,
} as const;

/** The value of a text option, or undefined. */
export function textOption(values: CliValues, name: string): string | undefined {
  const value = values[name];
  return typeof value === "string" ? value : undefined;
}

/** The values of a repeatable option; empty if it was not given. */
export function listOption(values: CliValues, name: string): string[] {
  const value = values[name];
  return Array.isArray(value) ? value : [];
}
