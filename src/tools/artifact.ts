import type { ResultStore } from "../ports/result-store.ts";
import { loading, referenced, wholeManifest } from "../schema/rules/whole-result.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../schema/words/json.ts";
import { asManifest, asTasksManifest, type Manifest, type TasksManifest } from "../schema/words/manifest.ts";
import { answering, configurationError } from "./contract/task-config.ts";
import type { Tool, ToolCall } from "./contract/tool.ts";
import { newArtifact } from "./put-artifact.ts";

/** What {@link createArtifactTool} takes. */
export interface ArtifactOptions {
  /** Where stored results are read from. */
  store: ResultStore;
}

/**
 * `artifact` (alias `result`): reads a stored result by its reference (language document, section 8), of a manifest what its
 * parts come to, one part in memory at a time. What cannot be read fails with REFERENCE_NOT_AVAILABLE. With `action: put` it stores a file.
 */
export function createArtifactTool({ store }: ArtifactOptions): Tool {
  return {
    run: (call) =>
      answering(async () => {
        const action = call.config["action"] ?? "get";
        if (action === "put") return { status: "ok", data: null, artifact: newArtifact(call.config) };
        if (action !== "get") {
          throw configurationError(
            `The artifact task knows the actions "get" and "put", got ${JSON.stringify(action)}.`,
          );
        }
        const wanted = requestOf(call);
        const work = typeof wanted === "string" ? referenced(wanted) : wholeManifest(wanted);
        const load = async (ref: string) => {
          // A manifest of thousands of parts must end with its task.
          call.signal.throwIfAborted();
          const payload = await (call.stored ?? store).load(ref, call.executionId);
          return call.open === undefined ? payload : await call.open(payload);
        };
        return { status: "ok", data: await loading(work, load) };
      }),
  };
}

/** What to read: a reference, or a manifest without one. */
type ArtifactRequest = string | Manifest | TasksManifest;

/** Keys that may hold the reference, in this order. */
const KEYS = ["uri", "ref", "result_ref", "temp_ref"];

/** The first reference in the task's keys, else among its inputs. */
function requestOf(call: ToolCall): ArtifactRequest {
  for (const source of [call.config, call.input]) {
    for (const value of [...KEYS.map((key) => source[key]), nested(source, "args")]) {
      if (value === undefined || value === null) continue;
      const wanted = reference(value);
      if (wanted !== undefined) return wanted;
      throw configurationError(
        `The artifact task takes a reference as text, a map with "ref" or a manifest, got ${JSON.stringify(value).slice(0, 200)}.`,
      );
    }
  }
  throw configurationError(
    'The artifact task has no reference. Give it as "ref", for example ref: "{{ fetch._ref }}" ("uri", "result_ref" and "args.ref" are accepted too). A result that is kept inline has none: read it by its step\'s name.',
  );
}

function nested(source: JsonObject, key: string): Json | undefined {
  const value = source[key];
  return isJsonObject(value) ? (own(value, "ref") as Json | undefined) : undefined;
}

/**
 * Text as is, or the map in its JSON; a ResultRef, or a map with one under `ref`, `__ref__` or `_ref`, by its reference; a
 * manifest without a reference by its parts.
 */
function reference(value: Json): ArtifactRequest | undefined {
  if (typeof value === "string") return value === "" ? undefined : (fromJson(value) ?? value);
  if (!isJsonObject(value)) return undefined;
  const inner = (own(value, "ref") ?? own(value, "__ref__") ?? own(value, "_ref")) as Json | undefined;
  return inner === undefined || inner === null ? (asTasksManifest(value) ?? asManifest(value)) : reference(inner);
}

/** A map that was rendered within a longer text, or came over HTTP, is its JSON. */
function fromJson(text: string): ArtifactRequest | undefined {
  if (!text.startsWith("{")) return undefined;
  try {
    return reference(JSON.parse(text) as Json);
  } catch {
    return undefined;
  }
}
