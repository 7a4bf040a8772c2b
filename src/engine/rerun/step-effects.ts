import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";
import { calledTask, type Program, type ProgramStep, type ProgramTask } from "../program/program.ts";

/** What running a step once more does outside of the execution. */
export interface StepEffect {
  /** Kinds of its tasks, each once: `http`, `python + sqldb`. */
  kind: string;
  /** What it does, in a few words; null: it only reads, or nothing. */
  effect: string | null;
  /** A key of the author's own keeps every such call from having its effect twice. */
  protected_by: "idempotency_key" | null;
}

/** Looks at what is written, not at what it comes to: a template that decides may do anything. */
export function stepEffect(program: Program, step: ProgramStep): StepEffect {
  const tasks = step.tasks.map((task) => calledTask(program, task) ?? task);
  const cursor = step.step.loop?.cursor;
  const kinds = [...(cursor === undefined ? [] : [cursor.kind]), ...tasks.map(({ task }) => task.kind)];
  const judged = tasks.flatMap((task) => {
    const effect = effectOf(task);
    return effect === null ? [] : [{ effect, isProtected: hasKey(task) }];
  });
  if (cursor !== undefined) judged.unshift({ effect: "claims rows", isProtected: false });
  const effects = [...new Set(judged.map(({ effect }) => effect))];
  const isProtected = judged.length > 0 && judged.every((one) => one.isProtected);
  return {
    kind: [...new Set(kinds)].join(" + "),
    effect: effects.length === 0 ? null : effects.join(", "),
    protected_by: isProtected ? "idempotency_key" : null,
  };
}

/** Methods that ask and change nothing. */
const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

function effectOf({ task: { kind, config } }: ProgramTask): string | null {
  switch (kind) {
    case "noop":
    case "wait":
    case "artifact":
      return null;
    case "http": {
      const method = textOf(config, "method", "GET").toUpperCase();
      if (SAFE_METHODS.has(method)) return null;
      return /^[A-Z]+$/.test(method) ? `sends ${method}` : "sends a request";
    }
    case "sqldb":
    case "duckdb":
    case "warehouse":
      return onlyReads(config) ? null : "writes to a database";
    case "nats":
      return /^(kv_)?(get|keys)$/.test(textOf(config, "operation", textOf(config, "action", "")))
        ? null
        : "writes to a bucket";
    case "mcp":
      return /^(health|tools\/list)$/.test(textOf(config, "method", "tools/call")) ? null : "calls a tool";
    case "playbook":
      return "starts a playbook";
    case "python":
      return "runs code";
    case "shell":
      return "runs commands";
    case "transfer":
      return "writes rows";
    default:
      return `runs ${kind}`;
  }
}

function textOf(config: JsonObject, key: string, fallback: string): string {
  const value = own(config, key) as Json | undefined;
  return typeof value === "string" ? value : fallback;
}

const WRITES =
  /\b(insert|update|delete|merge|truncate|create|drop|alter|copy|call|do|grant|revoke|vacuum|into|execute|set|lock)\b/i;
const READS = /^\s*(select|with|show|explain|values|table|describe)\b/i;

/** True where every statement is written out and begins as a query, with no word in it that writes. */
function onlyReads(config: JsonObject): boolean {
  const keys = ["command", "commands", "query", "sql", "statement", "statements"];
  const given = keys.map((key) => own(config, key) as Json | undefined).filter((value) => value !== undefined);
  const texts = given.flatMap((value) => (Array.isArray(value) ? value : [value]));
  return texts.length > 0 && texts.every((text) => typeof text === "string" && READS.test(text) && !WRITES.test(text));
}

/** A key that the author wrote: that of every run of a task is another one in each execution. */
function hasKey({ task: { kind, config } }: ProgramTask): boolean {
  if (kind !== "http") return false;
  const key = own(config, "idempotency_key");
  if (key !== undefined && key !== false && key !== null) return true;
  const headers = own(config, "headers");
  return isJsonObject(headers) && Object.keys(headers).some((name) => name.toLowerCase() === "idempotency-key");
}
