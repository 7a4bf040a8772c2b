/** Longest line given to a log; a longer one is cut into several. */
const LINE_BYTES_MAX = 16 * 1024;
const NEWLINE = 10;

/** What {@link createOutputReader} takes. */
export interface OutputReaderOptions {
  /** Ends with a newline. Stands in the output wherever a task's part of it ends. */
  mark: Buffer;
  /** Most bytes of output per part; the rest is dropped, with one line that says so. */
  maxBytes: number;
  /** One line, without its end. */
  line(text: string): void;
  /** The mark was met: everything before it has been given out. */
  part(): void;
}

/** Cuts the output of a process into lines, and into the parts that belong to one task each. */
export function createOutputReader(options: OutputReaderOptions) {
  const { mark, maxBytes } = options;
  let rest: Buffer = Buffer.alloc(0);
  let given = 0;
  let cut = false;

  function give(line: Buffer): void {
    let start = 0;
    while (line.length - start > LINE_BYTES_MAX) {
      const stop = characterStart(line, start + LINE_BYTES_MAX);
      givePiece(line.subarray(start, stop));
      start = stop;
    }
    givePiece(line.subarray(start));
  }

  function givePiece(bytes: Buffer): void {
    if (given + bytes.length > maxBytes) {
      if (!cut) options.line(`[more than ${maxBytes} bytes of output: the rest was dropped]`);
      cut = true;
      return;
    }
    given += bytes.length + 1;
    options.line(bytes.toString("utf8"));
  }

  function endPart(): void {
    given = 0;
    cut = false;
    options.part();
  }

  /** A line that ends with the mark is the unfinished last line of a part, mostly an empty one. */
  function takeLine(line: Buffer): void {
    const start = line.length - mark.length;
    if (start < 0 || line.compare(mark, 0, mark.length, start) !== 0) {
      give(withoutEnd(line));
      return;
    }
    if (start > 0) give(line.subarray(0, start));
    endPart();
  }

  return {
    push(chunk: Buffer): void {
      const data = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let start = 0;
      for (let end = data.indexOf(NEWLINE); end !== -1; end = data.indexOf(NEWLINE, start)) {
        takeLine(data.subarray(start, end + 1));
        start = end + 1;
      }
      // The end of an overlong line is kept back, because the mark may have begun there.
      while (data.length - start > LINE_BYTES_MAX + mark.length) {
        const stop = characterStart(data, start + LINE_BYTES_MAX);
        givePiece(data.subarray(start, stop));
        start = stop;
      }
      rest = data.subarray(start);
    },
    /** The process has ended: the rest is its last line. */
    end(): void {
      if (rest.length > 0) give(rest);
      rest = Buffer.alloc(0);
      given = 0;
      cut = false;
    },
  };
}

function withoutEnd(line: Buffer): Buffer {
  const carriageReturn = line.length > 1 && line[line.length - 2] === 13;
  return line.subarray(0, line.length - (carriageReturn ? 2 : 1));
}

/** The nearest place at or before `index` where a UTF-8 character starts. */
function characterStart(data: Buffer, index: number): number {
  let start = index;
  while (start > index - 4 && (data[start]! & 0xc0) === 0x80) start--;
  return start;
}
