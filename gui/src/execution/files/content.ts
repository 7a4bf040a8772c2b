import { problemOf, unreachable } from "../../api/problem.ts";
import { authorization } from "../../api/session.ts";
import { payloadAddress } from "../../parts/json/reference.ts";

/** Bytes of a file that are read to show how it begins. */
export const BEGINNING_BYTES = 65_536;
/** The beginning of a file as text, and whether that is all of it. Throws `Problem`. */
export async function beginningOf(ref: string, signal: AbortSignal): Promise<{ text: string; isWhole: boolean }> {
  const response = await read(ref, signal, { range: `bytes=0-${BEGINNING_BYTES - 1}` });
  const [, total] = /\/(\d+)$/.exec(response.headers.get("content-range") ?? "") ?? [];
  const text = await response.text();
  const isWhole = total === undefined || Number(total) <= BEGINNING_BYTES;
  // The last character may be cut in two.
  return { text: isWhole ? text : text.replace(/\ufffd$/, ""), isWhole };
}

/** A picture, decoded. Nothing of it is ever an element of the page but its pixels. Throws `Problem`, and `Error` for what is no picture. */
export async function pictureOf(ref: string, signal: AbortSignal): Promise<ImageBitmap> {
  const blob = await (await read(ref, signal, {})).blob();
  return await createImageBitmap(blob).catch(() => {
    throw new Error("This browser cannot decode the image.");
  });
}

async function read(ref: string, signal: AbortSignal, headers: Record<string, string>): Promise<Response> {
  try {
    const options = { headers: { ...authorization(), ...headers }, signal, credentials: "same-origin" } as const;
    const response = await fetch(payloadAddress(ref), options);
    // An empty file has no part.
    if (response.status === 416) return new Response("");
    if (!response.ok) throw await problemOf(response);
    return response;
  } catch (error) {
    if (signal.aborted) throw error;
    throw unreachable(error);
  }
}
