import { problemOf, unreachable } from "../../api/problem.ts";
import { authorization } from "../../api/session.ts";
import { payloadAddress } from "../../parts/json/reference.ts";

/** Bytes of a file that are read at a time. */
export const PART_BYTES = 65_536;

/** A part of a file. */
export interface FilePart {
  bytes: Uint8Array<ArrayBuffer>;
  /** Bytes of the whole file. */
  total: number;
}

/** The bytes of a file from a place on, at most so many. Throws `Problem`. */
export async function partOf(ref: string, from: number, length: number, signal?: AbortSignal): Promise<FilePart> {
  const response = await read(ref, signal, { range: `bytes=${from}-${from + length - 1}` });
  const bytes = new Uint8Array(await response.arrayBuffer());
  const [, total] = /\/(\d+)$/.exec(response.headers.get("content-range") ?? "") ?? [];
  return { bytes, total: total === undefined ? bytes.length : Number(total) };
}

/** A picture, decoded. Nothing of it is ever an element of the page but its pixels. Throws `Problem`, and `Error` for what is no picture. */
export async function pictureOf(ref: string, signal: AbortSignal): Promise<ImageBitmap> {
  const blob = await (await read(ref, signal, {})).blob();
  return await createImageBitmap(blob).catch(() => {
    throw new Error("This browser cannot decode the image.");
  });
}

async function read(ref: string, signal: AbortSignal | undefined, headers: Record<string, string>): Promise<Response> {
  try {
    const options = {
      headers: { ...authorization(), ...headers },
      signal: signal ?? null,
      credentials: "same-origin",
    } as const;
    const response = await fetch(payloadAddress(ref), options);
    // An empty file has no part.
    if (response.status === 416) return new Response("");
    if (!response.ok) throw await problemOf(response);
    return response;
  } catch (error) {
    if (signal?.aborted === true) throw error;
    throw unreachable(error);
  }
}
