import type { Json } from "../../schema/words/json.ts";
import { mayHoldSealed, SEALED, type Sealer } from "../../schema/words/sealed.ts";
import { mapJson, someJson } from "./map-json.ts";
import type { Secrets } from "./secrets.ts";

/**
 * What of a sensitive result is a secret. Shorter texts are not sealed where a later step reports them. The result itself is
 * never told; but words such as `ok` and `granted` stand in many results, and arcs are to see them.
 */
export const SENSITIVE = { charsMin: 8, isSensitive: true } as const;

/** True for a value in which something sealed may stand. */
export function mayBeSealed(value: Json): boolean {
  return someJson(value, (leaf) => typeof leaf === "string" && mayHoldSealed(leaf), true);
}

/** The value with everything sealed in it opened, and noted: it is a secret of whoever opens it. What does not open stays. */
export function openSealed(value: Json, sealer: Pick<Sealer, "open">, secrets: Pick<Secrets, "note">): Json {
  const open = (sealed: string): Json => {
    const opened = sealer.open(sealed);
    if (opened === undefined) return sealed;
    if (opened.kind === "result") return openSealed(noteSensitive(opened.json, secrets), sealer, secrets);
    // A text of a sensitive result that held a sealed one was sealed once more on its way.
    const whole = openSealed(opened.value, sealer, secrets);
    secrets.note(whole);
    return whole;
  };
  const openLeaf = (leaf: string | number): Json => {
    if (typeof leaf === "number" || !mayHoldSealed(leaf)) return leaf;
    if (isOneSealed(leaf)) return open(leaf);
    return leaf.replace(SEALED, (sealed) => {
      const opened = sealer.open(sealed);
      return opened?.kind === "value" ? String(open(sealed)) : sealed;
    });
  };
  // Keys are not sealed; in what was written by an earlier version they may be.
  return mapJson(value, openLeaf, openLeaf);
}

/** A payload that was sealed as a whole, opened and noted; any other as it is. Secrets within stay sealed. */
export function openResult(payload: Json, sealer: Pick<Sealer, "open">, secrets: Pick<Secrets, "note">): Json {
  const opened = typeof payload === "string" && isOneSealed(payload) ? sealer.open(payload) : undefined;
  return opened?.kind === "result" ? noteSensitive(opened.json, secrets) : payload;
}

/** True for a payload that may have been sealed as a whole. */
export function isOneSealed(text: string): boolean {
  // One bracket alone opens: an author's `[sealed:` before a sealed text is none of it.
  return text.startsWith("[sealed:") && text.indexOf("]") === text.length - 1 && text.lastIndexOf("[") === 0;
}

function noteSensitive(json: string, secrets: Pick<Secrets, "note">): Json {
  const data = JSON.parse(json) as Json;
  secrets.note(data, SENSITIVE);
  return data;
}
