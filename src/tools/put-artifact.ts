import type { Json, JsonObject } from "../schema/words/json.ts";
import type { NewArtifact } from "../schema/words/outcome.ts";
import { configurationError } from "./contract/task-config.ts";
import { FILE_BYTES_MAX, isFileName, NAME_CHARS_MAX, typeOfName } from "./files/file-names.ts";

/** The file that an `artifact` task with `action: put` stores. Throws `FlowError` INVALID_INPUT for what is none. */
export function newArtifact(config: JsonObject): NewArtifact {
  const { file: name, content, content_b64: base64, content_type: type } = config;
  if (typeof name !== "string" || !isFileName(name)) {
    throw configurationError(
      `The artifact task needs the name of its "file", of ${NAME_CHARS_MAX} characters at most, without slashes and control characters, got ${JSON.stringify(name ?? null).slice(0, 300)}.`,
    );
  }
  const isMissing = (value: Json | undefined) => value === undefined || value === null;
  if (isMissing(content) === isMissing(base64)) {
    throw configurationError(
      `The artifact task needs what is to stand in "${name}": "content", or "content_b64" for bytes.`,
    );
  }
  const bytes = isMissing(base64) ? bytesOf(content as Json) : decoded(name, base64 as Json);
  if (bytes.byteLength > FILE_BYTES_MAX) {
    throw configurationError(
      `The file "${name}" has ${bytes.byteLength.toLocaleString("en")} bytes; ${FILE_BYTES_MAX.toLocaleString("en")} are allowed.`,
    );
  }
  if (
    !isMissing(type) &&
    (typeof type !== "string" || !/^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(; ?[\w-]+=[\w.-]+)*$/.test(type))
  ) {
    throw configurationError(
      `"content_type" of the artifact task must be a media type such as text/csv, got ${JSON.stringify(type)}.`,
    );
  }
  return { name, contentType: typeof type === "string" ? type : typeOf(name, content), content: bytes };
}

/** Text as it is, anything else as JSON. */
function bytesOf(content: Json): Uint8Array<ArrayBuffer> {
  return Buffer.from(typeof content === "string" ? content : JSON.stringify(content));
}

function decoded(name: string, base64: Json): Uint8Array<ArrayBuffer> {
  const text = typeof base64 === "string" ? base64.replaceAll(/\s/g, "") : "?";
  if (/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)) return Buffer.from(text, "base64");
  throw configurationError(`"content_b64" of "${name}" is no base64.`);
}

function typeOf(name: string, content: Json | undefined): string {
  const known = typeOfName(name);
  if (known !== undefined) return known;
  if (typeof content === "string") return "text/plain; charset=utf-8";
  return content === undefined || content === null ? "application/octet-stream" : "application/json";
}
