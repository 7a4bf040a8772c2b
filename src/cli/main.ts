import { nearest } from "../language/words/nearest.ts";
import { FlowError } from "../schema/words/errors.ts";
import type { CliCommand, CliIo } from "./command-line/command.ts";
import { EXIT } from "./command-line/command.ts";
import { parseWords, unknownCommand } from "./command-line/parse.ts";
import { COMMAND_GROUPS, COMMANDS } from "./commands.ts";
import { printError } from "./print-error.ts";

/**
 * Runs one command line (without `node` and the program's name) and gives its exit code. Never throws: what goes wrong is
 * told on standard error, without a stack unless FLOW_DEBUG=1.
 */
export async function runCli(argv: readonly string[], io: CliIo): Promise<number> {
  try {
    return await dispatch(argv, io);
  } catch (error) {
    return printError(error, io);
  }
}

async function dispatch(argv: readonly string[], io: CliIo): Promise<number> {
  const [first, ...words] = argv;
  if (first === undefined || first === "--help" || first === "-h") {
    const { overview } = await import("./command-line/help.ts");
    // Nothing was asked for: that is a wrong command line, explained where errors are.
    (first === undefined ? io.stderr : io.stdout).write(overview(COMMAND_GROUPS));
    return first === undefined ? EXIT.usage : EXIT.ok;
  }
  const name = first === "--version" ? "version" : first;
  const command = COMMANDS.find((candidate) => candidate.name === name);
  if (command === undefined) throw first.startsWith("-") ? unknownOption(first) : unknownCommand(first, COMMANDS);
  try {
    return await runCommand(command, words, io);
  } catch (error) {
    const code = printError(error, io);
    return code === EXIT.cancelled ? code : (command.failureExit ?? code);
  }
}

function unknownOption(word: string): FlowError {
  const near = nearest(word.replace(/^-+/, ""), ["help", "version"]);
  const hint = near === undefined ? "Options stand after the command; see 'flow --help'." : `Did you mean --${near}?`;
  return new FlowError("USAGE", `Unknown option ${word}. ${hint}`);
}

async function runCommand(command: CliCommand, words: readonly string[], io: CliIo): Promise<number> {
  const parsed = parseWords(command, words);
  if (parsed.help) {
    const { commandHelp } = await import("./command-line/help.ts");
    io.stdout.write(commandHelp(command));
    return EXIT.ok;
  }
  const run = await command.load();
  return await run({ arguments: parsed.arguments, options: parsed.options, io });
}
