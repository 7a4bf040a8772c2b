/** One option of a command, `--name` on the command line. */
export interface CliOption {
  name: string;
  /** One letter that stands for it, `-f`. */
  short?: string;
  /** Takes a value; its placeholder in the help text. Absent: the option is a switch. */
  value?: string;
  /** May be given more than once. */
  many?: true;
  summary: string;
  /** What the value may be, in capitals or not, for completion and for the error when it is something else. */
  choices?: readonly string[];
}

/** One word of a command that is not an option. */
export interface CliArgument {
  name: string;
  summary: string;
  optional?: true;
  /** Takes all that follow. */
  many?: true;
  /** What the word may be, for completion and for the error when it is something else. */
  choices?: readonly string[];
  /** What completion offers. */
  complete?: "file" | "command";
}

/** One command: what `--help`, completion and parsing are made from. */
export interface CliCommand {
  name: string;
  /** One line. */
  summary: string;
  arguments: readonly CliArgument[];
  options: readonly CliOption[];
  /** Further help: what it does, exit codes, examples. */
  details?: string;
  /** Exit code of whatever goes wrong, other than being interrupted. Default: by the error, see {@link EXIT}. */
  failureExit?: number;
  /** Loads the code that runs it. Loaded only then, so that `flow --help` and short runs stay quick. */
  load(): Promise<(input: CliInput) => Promise<number>>;
}

/** A heading of `flow --help` and the commands beneath it. */
export interface CommandGroup {
  title: string;
  commands: readonly CliCommand[];
}

/** What a command is given. */
export interface CliInput {
  arguments: string[];
  options: CliValues;
  io: CliIo;
}

/** Options as given: switches are booleans, those that may repeat are lists. */
export type CliValues = Readonly<Record<string, string | boolean | string[] | undefined>>;

/** The surroundings of a command. */
export interface CliIo {
  stdout: NodeJS.WritableStream & { isTTY?: boolean; columns?: number };
  stderr: NodeJS.WritableStream & { isTTY?: boolean; columns?: number; rows?: number };
  /** Absent where nobody could answer a question. */
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

/** The option's text, or undefined. */
export function textOption(values: CliValues, name: string): string | undefined {
  const value = values[name];
  return typeof value === "string" ? value : undefined;
}

/** The values of an option that may repeat. */
export function listOption(values: CliValues, name: string): string[] {
  const value = values[name];
  return Array.isArray(value) ? value : [];
}
