/**
 * Log lines for people: `17:08:20 warning what happened path=etl/load`. A line arrives as JSON, as programs read it, and is
 * printed shorter: the time of day, the level unless it is info, the message, and its fields. Fields that the message contains
 * are left out, and long values are cut. A text that is not a JSON object passes unchanged.
 */
export function prettyLog(
  stream: Pick<NodeJS.WritableStream, "write">,
  { colors, stacks }: PrettyOptions,
): { write(line: string): void } {
  const paint = colors
    ? (code: number, text: string) => `\u001b[${code}m${text}\u001b[0m`
    : (_: number, text: string) => text;
  return {
    write(line) {
      stream.write(pretty(line, paint, stacks));
    },
  };
}

/** How lines look. */
export interface PrettyOptions {
  colors: boolean;
  /** An error's stack is shown below its line; its message always is, with what caused it. */
  stacks: boolean;
}

type Paint = (code: number, text: string) => string;

const RED = 31;
const YELLOW = 33;
const DIM = 2;
/** Fields that are shown elsewhere, or not at all. */
const UNSAID: ReadonlySet<string> = new Set(["level", "time", "pid", "role", "msg", "err", "hostname"]);
const VALUE_MAX = 80;

function pretty(line: string, paint: Paint, stacks: boolean): string {
  const record = parse(line);
  if (record === undefined) return line;
  const message = clean(String(record["msg"] ?? ""));
  const parts = [paint(DIM, timeOfDay(record["time"])), levelOf(record["level"], paint)];
  // Two processes write to one terminal.
  if (record["role"] === "worker") parts.push(paint(DIM, "worker:"));
  parts.push(message);
  const fields = Object.entries(record)
    .filter(([name]) => !UNSAID.has(name))
    .map(([name, value]) => [name, shown(value)] as const)
    .filter(([name, value]) => !message.includes(`${name}=${value}`) && !message.includes(`'${value}'`))
    .map(([name, value]) => `${name}=${value}`);
  if (fields.length > 0) parts.push(paint(DIM, fields.join(" ")));
  const text = parts.filter((part) => part !== "").join(" ");
  return `${text}${errorText(record["err"], paint, stacks)}\n`;
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function timeOfDay(time: unknown): string {
  const date = new Date(String(time));
  if (Number.isNaN(date.getTime())) return "";
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}

function levelOf(level: unknown, paint: Paint): string {
  if (level === "warn") return paint(YELLOW, "warning");
  if (level === "error" || level === "fatal") return paint(RED, "error");
  return level === "info" ? "" : paint(DIM, clean(String(level)));
}

function shown(value: unknown): string {
  const text = clean(typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
  return text.length > VALUE_MAX ? `${text.slice(0, VALUE_MAX - 1)}…` : text;
}

function errorText(error: unknown, paint: Paint, stacks: boolean): string {
  if (typeof error === "string") return `: ${clean(error)}`;
  if (typeof error !== "object" || error === null) return "";
  const messages: string[] = [];
  let stack = "";
  for (let at: unknown = error; typeof at === "object" && at !== null; ) {
    const { message, code, cause, stack: trace } = at as Record<string, unknown>;
    const text = `${clean(String(message ?? ""))}${typeof code === "string" ? ` (${clean(code)})` : ""}`;
    if (!messages.some((earlier) => earlier.includes(text))) messages.push(text);
    if (stack === "" && typeof trace === "string") stack = trace;
    at = cause;
  }
  const frames = stack.split("\n").slice(1).map(clean).join("\n");
  return `: ${messages.join(": ")}${stacks && frames !== "" ? `\n${paint(DIM, frames)}` : ""}`;
}

/** What others wrote must not steer the terminal. */
function clean(text: string): string {
  return text.replace(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/g, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
