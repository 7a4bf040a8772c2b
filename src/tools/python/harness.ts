import { readPythonFile } from "../../platform/system/python-file.ts";
import { FlowError } from "../../schema/words/errors.ts";

/**
 * The program inside each Python interpreter: the files of `harness/`. The bundle holds their texts, so that a service that
 * runs while a new version is installed starts interpreters that match it. Frames on file descriptor 3, both ways: length (4
 * bytes, big-endian), then that many bytes. The first frame holds these files, the second the settings, every further one is
 * JSON. After `ready` the harness waits for a request, may ask for `names` while it runs, and answers with exactly one `done`.
 * Nothing else uses the descriptor, so that no output of the code, or of its child processes, can be mistaken for an answer.
 */

/** Exit status of an interpreter that is older than {@link PYTHON_MINIMUM}; the same number is in `harness/bootstrap.py`. */
export const EXIT_TOO_OLD = 86;
/** Oldest version that runs the harness. */
export const PYTHON_MINIMUM = "3.8";

/** The harness's files after the bootstrap, each behind those that it imports. */
const FILES = ["json_text", "program", "task", "errors", "frames", "streams", "isolation", "main"];

/** What `python -c` runs. It reads {@link HARNESS} from descriptor 3. */
export const BOOTSTRAP = textOf("bootstrap");

/** The first frame to a new interpreter: names and texts of the files. */
export const HARNESS = JSON.stringify(FILES.map((name) => [name, textOf(name)]));

function textOf(name: string): string {
  return readPythonFile(`src/tools/python/harness/${name}.py`);
}

const HEAD_BYTES = 4;
const NOTHING = Buffer.alloc(0);

/** A frame of the protocol with an interpreter: its length in four bytes, big-endian, then `text`. */
export function frame(text: string): Buffer {
  const length = Buffer.byteLength(text);
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + length);
  bytes.writeUInt32BE(length);
  bytes.write(text, HEAD_BYTES);
  return bytes;
}

/**
 * Puts frames together again from the pieces that a socket gives, and calls `onFrame` with the bytes of each. Pieces are
 * joined once per frame, not once per piece: a frame of 5 MB comes in about eighty.
 * `push` throws FlowError `INTERNAL` for a frame longer than `maxBytes`.
 */
export function createFrameReader(maxBytes: number, onFrame: (bytes: Buffer<ArrayBuffer>) => void) {
  let pieces: Buffer<ArrayBuffer>[] = [];
  let held = 0;
  let wanted: number | undefined;

  function join(): Buffer<ArrayBuffer> {
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
    push(piece: Buffer<ArrayBuffer>): void {
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
        const bytes = wanted === 0 ? NOTHING : join().subarray(0, wanted);
        drop(wanted);
        wanted = undefined;
        onFrame(bytes);
      }
    },
  };
}
