import { createHash } from "node:crypto";
import type { PayloadBody, PayloadReading } from "../../../src/ports/payload-store.ts";

/** A payload in memory, given in parts of 100 KB. */
export function bodyOf(content: string | Uint8Array): PayloadBody {
  const bytes = Buffer.from(content);
  return {
    bytes: bytes.length,
    sha256: createHash("sha256").update(bytes).digest("hex"),
    async *read() {
      for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000);
    },
  };
}

/** What is read, as text; undefined where there is nothing. */
export async function textIn(reading: PayloadReading | undefined): Promise<string | undefined> {
  if (reading === undefined) return undefined;
  return (await gathered(reading.body)).toString("utf8");
}

/** All of it. */
export async function gathered(parts: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const part of parts) all.push(part);
  return Buffer.concat(all);
}
