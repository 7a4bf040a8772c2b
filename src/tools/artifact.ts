import type { ResultStore } from "../ports/result-store.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../schema/json.ts";
import { answering, configurationError } from "./config.ts";
import type { Tool, ToolCall } from "./tool.ts";

/** What {@link createArtifactTool} takes. */
export interface ArtifactOptions {
  /** Where stored results are read from. */
  store: ResultStore;
}

/** `artifact` (alias `result`): reads a stored payload by its reference (language document, section 8). */
export function createArtifactTool(options: ArtifactOptions): Tool {
  return {
    run: (call) =>
      answering(async () => {
        const action = call.config["action"] ?? "get";
        if (action !== "get") {
          throw configurationError(`The artifact task knows the action "get" only, got ${JSON.stringify(action)}.`);
        }
        return { status: "ok", data: await options.store.load(referenceOf(call)) };
      }),
  };
}

/** The first of `uri`, `ref`, `result_ref` and `args.ref`, in the task's keys before its inputs. */
function referenceOf(call: ToolCall): string {
  for (const source of [call.config, call.input]) {
    for (const value of [source["uri"], source["ref"], source["result_ref"], nested(source, "args")]) {
      if (value === undefined || value === null) continue;
      const ref = refText(value);
      if (ref !== undefined) return ref;
      throw configurationError(
        `The artifact task takes a reference as text or as a map with "ref", got ${JSON.stringify(value).slice(0, 200)}.`,
      );
    }
  }
  throw configurationError(
    'The artifact task has no reference. Give it as "ref", for example ref: "{{ fetch._ref }}" ("uri", "result_ref" and "args.ref" are accepted too).',
  );
}

function nested(source: JsonObject, key: string): Json | undefined {
  const value = source[key];
  return isJsonObject(value) ? (own(value, "ref") as Json | undefined) : undefined;
}

/** Text as is; a ResultRef, or anything that holds one under `ref` or `__ref__`, by its reference. */
function refText(value: Json): string | undefined {
  if (typeof value === "string") return value === "" ? undefined : value;
  if (!isJsonObject(value)) return undefined;
  const inner = (own(value, "ref") ?? own(value, "__ref__") ?? own(value, "_ref")) as Json | undefined;
  return inner === undefined || inner === null ? undefined : refText(inner);
}
