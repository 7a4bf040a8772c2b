import { pino } from "pino";
import { printableJson } from "./printable.ts";

/** Writes log lines. Fields come first, as ids are what one searches by; values of type `Secret` print as `[secret]`. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  /** `fields.err` is the error: its message, stack and cause are written. */
  error(fields: LogFields, message: string): void;
}

/** What a line is about: `request_id`, `execution_id`, `command_id`, `path`, … in the wire's spelling. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Takes log lines, each a JSON object and a line feed. */
export interface LogStream {
  write(line: string): unknown;
}

/** Least important lines that are written. */
export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";

/**
 * JSON lines on `stream`, each with the fields of `base`. No character of a line can move the cursor of a terminal that shows it. What reads like a secret by its key is masked as a second net, below
 * `Secret`.
 */
export function createLogger(level: LogLevel, stream: LogStream, base: LogFields = {}): Logger {
  return pino(
    {
      level,
      base: { pid: process.pid, ...base },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
      hooks: { streamWrite: printableJson },
      redact: { paths: REDACTED.flatMap((key) => [key, `*.${key}`]), censor: "[secret]" },
    },
    stream,
  );
}

const REDACTED = ["authorization", "password", "token", "cookie", "connectionString", '["x-session-token"]'];

/** An error chain as it may be logged: no field but these. Drivers put statements and their values into further ones. */
function describeError(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return String(error);
  const { name, message, stack, cause } = error;
  const code = "code" in error && typeof error.code === "string" ? { code: error.code } : {};
  const described = { name, ...code, message: withoutValues(message), stack: withoutValues(stack ?? "") };
  return cause === undefined || depth === CAUSES_MAX
    ? described
    : { ...described, cause: describeError(cause, depth + 1) };
}

const CAUSES_MAX = 5;

/** The statement builder ends its message with the values of the statement's parameters: a document, a secret. */
function withoutValues(text: string): string {
  return text.replace(/\nparams: [\s\S]*?(?=\n {4}at |$(?![\s\S]))/g, "");
}
