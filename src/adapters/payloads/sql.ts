import type { PayloadBody, PayloadRange, PayloadStore } from "../../ports/payload-store.ts";
import type { Database } from "../../repositories/database/database.ts";
import { databaseMessage, unavailable } from "../../repositories/database/error-codes.ts";
import {
  deleteRows,
  findPart,
  insertPart,
  insertRows,
  isRefusedValue,
  payloadBytes,
} from "../../repositories/results/rows.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { createJsonItems } from "./json-items.ts";

/** One value that is no list is one row, and in memory three times while it is written. */
const PAYLOAD_BYTES_MAX = 16 * 1_048_576;
const PART_BYTES = 1_048_576;
/** Items of one statement, and the length of their texts. */
const ITEMS_MAX = 1_000;
const ITEMS_TEXT_MAX = 1_048_576;

/**
 * Payloads as rows of the service's database, to be looked into with SQL: one per item of a list, one for any other value
 * (`flow.result_row`). Their bytes are kept beside them (`flow.result_part`), since `jsonb` does not keep a text as it was.
 */
export function createSqlPayloads(database: Database): PayloadStore {
  return {
    kind: "sqldb",
    bytesMax: PAYLOAD_BYTES_MAX,
    isPlain: true,
    locate: (_executionId, name) => ({ schema: "flow", table: "result_row", payload: name }),
    async write(location, body, _about, signal) {
      const payload = nameOf(location);
      try {
        const rows = await writeRows(database, payload, body, signal);
        const place = rows.isList ? { range: `0-${Math.max(0, rows.count - 1)}` } : { pk: `${payload}/0` };
        return { ...location, ...place, rows: rows.count };
      } catch (error) {
        if (!isRefusedValue(error)) throw storeError(error);
        const why = `The store sqldb cannot take the result apart: ${databaseMessage(error)}`;
        throw new FlowError("INVALID_INPUT", `${why}. PostgreSQL holds no U+0000; name another store, or auto`);
      }
    },
    async read(location, range) {
      const payload = nameOf(location);
      const bytes = await withStoreErrors(payloadBytes(database, payload));
      if (bytes === undefined) return undefined;
      return { bytes, body: partsOf(database, payload, range ?? { start: 0, end: bytes }) };
    },
    remove: (location) => withStoreErrors(deleteRows(database, nameOf(location))),
  };
}

async function writeRows(
  database: Database,
  payload: string,
  body: PayloadBody,
  signal: AbortSignal,
): Promise<{ count: number; isList: boolean }> {
  const items = createJsonItems();
  let ready: string[] = [];
  let textLength = 0;
  let count = 0;
  const flush = async () => {
    if (ready.length > 0) await insertRows(database, payload, count, ready);
    count += ready.length;
    ready = [];
    textLength = 0;
  };
  const add = async (texts: readonly string[]) => {
    for (const text of texts) {
      ready.push(text);
      textLength += text.length;
      if (ready.length >= ITEMS_MAX || textLength >= ITEMS_TEXT_MAX) await flush();
    }
  };
  let place = 0;
  for await (const part of inParts(body.read())) {
    signal.throwIfAborted();
    await insertPart(database, payload, place, part);
    place += part.byteLength;
    await add(items.add(part));
  }
  await add(items.end());
  await flush();
  return { count, isList: items.isList() };
}

/** The same bytes in parts of 1 MiB. */
async function* inParts(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body) {
    for (let at = 0; at < piece.byteLength; ) {
      const taken = piece.subarray(at, at + PART_BYTES - bytes);
      at += taken.byteLength;
      pieces.push(taken);
      bytes += taken.byteLength;
      if (bytes < PART_BYTES) continue;
      yield Buffer.concat(pieces);
      pieces = [];
      bytes = 0;
    }
  }
  if (bytes > 0) yield Buffer.concat(pieces);
}

async function* partsOf(database: Database, payload: string, { start, end }: PayloadRange): AsyncGenerator<Uint8Array> {
  for (let at = start; at < end; ) {
    const found = await withStoreErrors(findPart(database, payload, at));
    if (found === undefined) return;
    const part = found.part.subarray(at - found.place, end - found.place);
    at += part.byteLength;
    yield part;
  }
}

async function withStoreErrors<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw storeError(error);
  }
}

function storeError(error: unknown): unknown {
  return unavailable(error) ?? error;
}

function nameOf(location: JsonObject): string {
  return String(location["payload"]);
}
