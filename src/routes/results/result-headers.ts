import type { Context } from "hono";
import type { RouteContract } from "../../schema/routes/contract.ts";
import { maskSealed } from "../../schema/words/sealed.ts";
import type { Sealing } from "../../services/credentials/sealing.ts";
import type { OpenedResult } from "../../services/results/read-result.ts";
import { callerOf } from "../http/audit-caller.ts";
import { maskedParts } from "../http/masked-json.ts";
import type { RouteEnvironment } from "../http/request-context.ts";

/** Longest result that is opened for a person: it is decrypted as a whole, in memory. */
const OPENED_BYTES_MAX = 64 * 1024 * 1024;
/** `"[sealed:`: how a payload begins that may be sealed as a whole. */
const BEGIN = '"[sealed:';

/**
 * A payload in which something is sealed, for a person: a sensitive result opened, though for no user, secrets masked. It has no checksum and no
 * parts, since it is not what is stored.
 */
export async function shownResult(
  c: Context<RouteEnvironment>,
  found: OpenedResult,
  ref: string,
  sealing: Pick<Sealing, "openResult">,
  route: RouteContract,
): Promise<AsyncIterable<Uint8Array>> {
  const parts = await found.open();
  if (found.bytes > OPENED_BYTES_MAX || c.var.role === "user") return maskedParts(parts);
  const held: Uint8Array[] = [];
  const iterator = parts[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done === true) return maskedParts(rest([], iterator));
  held.push(first.value);
  const begin = Buffer.from(first.value.buffer, first.value.byteOffset, Math.min(first.value.byteLength, BEGIN.length));
  if (begin.toString("latin1") !== BEGIN) return maskedParts(rest(held, iterator));
  for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) held.push(next.value);
  const payload = Buffer.concat(held).toString("utf8");
  const json = await sealing.openResult(ref, payload, callerOf(c, route));
  return rest([Buffer.from(maskSealed(json ?? payload))]);
}

async function* rest(held: readonly Uint8Array[], iterator?: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* held;
    for (let next = await iterator?.next(); next?.done === false; next = await iterator?.next()) yield next.value;
  } finally {
    await iterator?.return?.();
  }
}
