/** The bytes from `start` to `end` (exclusive) of a stream of parts; reads no part beyond them. */
export async function* byteSlice(
  parts: AsyncIterable<Uint8Array>,
  { start, end }: { start: number; end: number },
): AsyncGenerator<Uint8Array> {
  let place = 0;
  for await (const part of parts) {
    const from = Math.max(0, start - place);
    const to = Math.min(part.byteLength, end - place);
    place += part.byteLength;
    if (from < to) yield part.subarray(from, to);
    if (place >= end) return;
  }
}
