import { Problem, problemOf, unreachable } from "../../api/problem.ts";
import { addressOf, authorization } from "../../api/session.ts";

/** A result in a store (interface specification, ResultRef): the fields that the page reads. */
export interface Reference {
  kind: string;
  ref: string;
  /** One field of the payload is meant. */
  field?: string;
  store?: string;
  expires_at?: string;
  meta?: { bytes?: number; content_type?: string };
  extracted?: Readonly<Record<string, unknown>>;
  preview?: { truncated?: boolean; bytes?: number; sample?: unknown };
}

/** Results in parts (interface specification, Manifest). */
export interface Manifest {
  kind: "manifest";
  strategy?: string;
  /** Of a list of tasks each part has the task's label, and its value where that is inline. */
  parts?: readonly { ref?: string; bytes?: number; count?: number; task?: string; value?: unknown }[];
  ref?: string;
  total_parts?: number;
  total_bytes?: number;
}

/** Bytes of a payload that are shown in the page; a larger one is a file to take away. */
export const SHOWN_BYTES_MAX = 16 * 1024 * 1024;

/** Whether a value is a reference to a stored one. */
export function isReference(value: unknown): value is Reference {
  if (typeof value !== "object" || value === null) return false;
  const { kind, ref } = value as { kind?: unknown; ref?: unknown };
  return (kind === "result_ref" || kind === "temp_ref") && typeof ref === "string";
}

/** Whether a value is a list of parts that are kept elsewhere. */
export function isManifest(value: unknown): value is Manifest {
  if (typeof value !== "object" || value === null) return false;
  const { kind, parts, ref } = value as { kind?: unknown; parts?: unknown; ref?: unknown };
  return kind === "manifest" && (Array.isArray(parts) || typeof ref === "string");
}

/** Where a payload is read. */
export function payloadAddress(ref: string): string {
  return `${addressOf(`/api/results/resolve`)}?ref=${encodeURIComponent(ref)}`;
}

/**
 * The payload behind a reference, its JSON or its text. Throws {@link Problem}: refused, gone, or of more than
 * {@link SHOWN_BYTES_MAX} bytes, of which no more than that are read.
 */
export async function loadPayload(ref: string, signal: AbortSignal): Promise<unknown> {
  try {
    const response = await fetch(payloadAddress(ref), { headers: authorization(), signal, credentials: "same-origin" });
    if (!response.ok) throw await problemOf(response);
    const text = await boundedText(response);
    return /[/+]json\b/.test(response.headers.get("content-type") ?? "") ? JSON.parse(text) : text;
  } catch (error) {
    if (signal.aborted) throw error;
    if (error instanceof SyntaxError) throw new Problem(200, "HTTP", "The stored result is not valid JSON");
    throw unreachable(error);
  }
}

async function boundedText(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  if (reader === undefined) return "";
  const decoder = new TextDecoder();
  let bytes = 0;
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > SHOWN_BYTES_MAX) {
      await reader.cancel();
      const megabytes = SHOWN_BYTES_MAX / 1024 / 1024;
      throw new Problem(
        413,
        "TOO_LARGE",
        `It is larger than the ${megabytes} MB that are shown here. Download it instead`,
      );
    }
    text += decoder.decode(value, { stream: true });
  }
}

/** `1.4 MB`. */
export function bytesText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(bytes < 10_000 ? 1 : 0)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}
