import { nearest } from "../language/words/nearest.ts";
import { FlowError } from "../schema/words/errors.ts";
import type { CliEntry, CliIo } from "./command-line/command.ts";
import { EXIT } from "./command-line/command.ts";
import { parseLine, unknownCommand } from "./command-line/parse.ts";
import { COMMAND_GROUPS, COMMANDS } from "./commands.ts";
import { printError } from "./print-error.ts";

/**
 * Runs one command line (without `node` and the program's name) and returns its exit code. Never throws: errors are
 * printed on standard error, with a stack only if FLOW_DEBUG=1.
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
    // No command at all is a usage error: its explanation goes to standard error.
    const stream = first === undefined ? io.stderr : io.stdout;
    stream.write(overview(COMMAND_GROUPS, stream));
    return first === undefined ? EXIT.usage : EXIT.ok;
  }
  const name = first === "--version" ? "version" : first;
  const entry = COMMANDS.find((candidate) => candidate.name === name);
  if (entry === undefined) throw first.startsWith("-") ? unknownOption(first) : unknownCommand(first, COMMANDS);
  try {
    return await runEntry(entry, words, io);
  } catch (error) {
    const code = printError(error, io);
    return code === EXIT.cancelled ? code : (entry.failureExit ?? code);
  }
}

function unknownOption(word: string): FlowError {
  const near = nearest(word.replace(/^-+/, ""), ["help", "version"]);
  const hint = near === undefined ? "Options follow the command; see 'flow --help'." : `Did you mean --${near}?`;
  return new FlowError("USAGE", `Unknown option ${word}. ${hint}`);
}

async function runEntry(entry: CliEntry, words: readonly string[], io: CliIo): Promise<number> {
  const parsed = parseLine(entry, words);
  if ("help" in parsed) {
    const { entryHelp } = await import("./command-line/help.ts");
    io.stdout.write(entryHelp(parsed.help, parsed.path, io.stdout));
    if (parsed.words.length > 0 && "explain" in parsed.help && parsed.help.explain !== undefined) {
      const explain = await parsed.help.explain();
      io.stdout.write(`\n${await explain(parsed.words, io)}`);
    }
    return EXIT.ok;
  }
  const run = await parsed.command.load();
  return await run({ arguments: parsed.arguments, options: parsed.options, io });
}
