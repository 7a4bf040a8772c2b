import { errorsOf, formatDiagnostic } from "../schema/words/diagnostic.ts";
import { type ErrorCode, FlowError, messageOf } from "../schema/words/errors.ts";
import { type CliIo, EXIT } from "./command-line/command.ts";
import { cleanText } from "./terminal/text.ts";

/** Errors in the input: the document, the command line, a file, a setting. All others are failures of the run. */
const CALLER_ERRORS: ReadonlySet<ErrorCode> = new Set([
  "USAGE",
  "INVALID_PLAYBOOK",
  "FILE_UNREADABLE",
  "INVALID_INPUT",
  "INVALID_SECRET",
  "INVALID_SETTING",
  "NOT_FOUND",
  "TEMPLATE_ERROR",
  "TEMPLATE_BUDGET",
]);

/** Codes that are printed because they add to the message. */
const CODES_SHOWN: ReadonlySet<ErrorCode> = new Set([
  "TEMPLATE_ERROR",
  "TEMPLATE_BUDGET",
  "KEYCHAIN",
  "REFERENCE_NOT_AVAILABLE",
]);

/** Prints an error on standard error and returns the exit code. A stack is shown only with FLOW_DEBUG=1. */
export function printError(error: unknown, io: CliIo): number {
  if (error instanceof FlowError) {
    io.stderr.write(`flow: ${multiline(error.message)}${CODES_SHOWN.has(error.code) ? ` (${error.code})` : ""}\n`);
    // Errors only: warnings do not keep the document from running.
    for (const diagnostic of errorsOf(error)) io.stderr.write(`${cleanText(formatDiagnostic(diagnostic))}\n`);
  } else {
    io.stderr.write(`flow: unexpected error: ${multiline(messageOf(error))}\n`);
    if (io.environment["FLOW_DEBUG"] !== "1") {
      io.stderr.write("This is a fault of flow itself. FLOW_DEBUG=1 shows where it happened; please report it.\n");
    }
  }
  if (io.environment["FLOW_DEBUG"] === "1" && error instanceof Error) io.stderr.write(`${error.stack ?? ""}\n`);
  return exitCodeOf(error);
}

function exitCodeOf(error: unknown): number {
  if (!(error instanceof FlowError)) return EXIT.failed;
  if (error.code === "CANCELLED") return EXIT.cancelled;
  return CALLER_ERRORS.has(error.code) ? EXIT.usage : EXIT.failed;
}

function multiline(message: string): string {
  return message.split("\n").map(cleanText).join("\n");
}
