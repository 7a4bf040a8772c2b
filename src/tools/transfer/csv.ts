import { setOwn } from "../../schema/words/json.ts";
import { unreadableRows } from "./rows.ts";

/** Longest text of one record, characters. */
const RECORD_CHARS_MAX = 16 * 1024 * 1024;

/**
 * The records of a CSV text (RFC 4180) as texts of JSON objects, while the text comes. The first line names the fields;
 * every value is text, an empty one without quotes is null. Throws a `transferFailure` of kind `parse` for a record of another length,
 * and for a text that ends within quotes.
 */
export async function* csvRows(
  text: AsyncIterable<string>,
  delimiter: string,
): AsyncGenerator<{ row: string; columns: string[] }> {
  let columns: string[] | undefined;
  let number = 0;
  for await (const record of records(text, delimiter)) {
    number += 1;
    if (columns === undefined) {
      columns = record.map((name) => (name ?? "").trim());
      continue;
    }
    // A line without anything is the end of most files.
    if (record.length === 1 && record[0] === null && columns.length > 1) continue;
    if (record.length !== columns.length) {
      throw unreadableRows(
        `Record ${number} of the source's CSV has ${record.length} fields, its first line ${columns.length}.`,
      );
    }
    const row: Record<string, string | null> = {};
    for (const [index, name] of columns.entries()) setOwn(row, name, record[index]);
    yield { row: JSON.stringify(row), columns };
  }
}

async function* records(text: AsyncIterable<string>, delimiter: string): AsyncGenerator<(string | null)[]> {
  const state: CsvState = {
    record: [],
    field: "",
    quoted: false,
    inQuotes: false,
    afterQuote: false,
    chars: 0,
    isFirst: true,
  };
  for await (const chunk of text) yield* readChunk(state, chunk, delimiter);
  if (state.inQuotes && !state.afterQuote)
    throw unreadableRows("The source's CSV ends within a quoted field: it was cut off.");
  if (state.record.length > 0 || state.field !== "" || state.quoted) yield endRecord(state);
}

interface CsvState {
  record: (string | null)[];
  field: string;
  /** The field began with a quote. */
  quoted: boolean;
  inQuotes: boolean;
  /** In quotes, after a quote character: a second one is an escaped quote, anything else ends the quotes. */
  afterQuote: boolean;
  /** Of the record. */
  chars: number;
  isFirst: boolean;
}

function* readChunk(state: CsvState, chunk: string, delimiter: string): Generator<(string | null)[]> {
  for (const char of chunk) {
    if (state.isFirst) {
      state.isFirst = false;
      if (char === "\ufeff") continue;
    }
    state.chars += 1;
    if (state.chars > RECORD_CHARS_MAX)
      throw unreadableRows("A record of the source's CSV is longer than 16 Mi characters.");
    if (state.inQuotes && !state.afterQuote) {
      if (char === '"') state.afterQuote = true;
      else state.field += char;
    } else if (state.afterQuote && char === '"') {
      state.field += char;
      state.afterQuote = false;
    } else if (char === delimiter) {
      endField(state);
    } else if (char === "\n") {
      yield endRecord(state);
    } else if (char === '"' && state.field === "" && !state.quoted) {
      state.quoted = true;
      state.inQuotes = true;
    } else if (char !== "\r") {
      state.inQuotes = false;
      state.afterQuote = false;
      state.field += char;
    }
  }
}

function endField(state: CsvState): void {
  state.record.push(state.field === "" && !state.quoted ? null : state.field);
  state.field = "";
  state.quoted = false;
  state.inQuotes = false;
  state.afterQuote = false;
}

function endRecord(state: CsvState): (string | null)[] {
  endField(state);
  const { record } = state;
  state.record = [];
  state.chars = 0;
  return record;
}
