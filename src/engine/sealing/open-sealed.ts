import type { Json } from "../../schema/words/json.ts";
import { mayHoldSealed, SEALED, type Sealer } from "../../schema/words/sealed.ts";
import { mapJson, someJson } from "./map-json.ts";
import type { Secrets } from "./secrets.ts";

/**
 * Shortest text of a sensitive result that counts as a secret. Shorter ones are not sealed where a later step reports them. The
 * result itself is always sealed; but words such as `ok` and `granted` occur in many results, and arcs must be able to read them.
 */
export const SENSITIVE = { charsMin: 8, isSensitive: true } as const;

/** True for a value that may contain something sealed. */
export function mayBeSealed(value: Json): boolean {
  return someJson(value, (leaf) => typeof leaf === "string" && mayHoldSealed(leaf), true);
}

/**
 * The value with every sealed part opened and noted: it becomes a secret of the command that opens it. A part that does not
 * open stays as it is, unless `lost` returns a replacement because it should have opened.
 */
export function openSealed(
  value: Json,
  sealer: Pick<Sealer, "open">,
  secrets: Pick<Secrets, "note">,
  lost?: (sealed: string) => Json | undefined,
): Json {
  const open = (sealed: string): Json => {
    const opened = sealer.open(sealed);
    if (opened === undefined) return sealed;
    if (opened.kind === "result") return openSealed(noteSensitive(opened.json, secrets), sealer, secrets, lost);
    // If a text of a sensitive result contained a sealed text, it was sealed a second time on its way.
    const whole = openSealed(opened.value, sealer, secrets, lost);
    secrets.note(whole);
    return whole;
  };
  const openLeaf = (leaf: string | number): Json => {
    if (typeof leaf === "number" || !mayHoldSealed(leaf)) return leaf;
    if (lost !== undefined) {
      for (const [sealed] of leaf.matchAll(SEALED)) {
        const instead = lost(sealed);
        if (instead !== undefined) return instead;
      }
    }
    if (isOneSealed(leaf)) return open(leaf);
    return leaf.replace(SEALED, (sealed) => {
      const opened = sealer.open(sealed);
      return opened?.kind === "value" ? String(open(sealed)) : sealed;
    });
  };
  // Keys are not sealed now, but an earlier version may have sealed them.
  return mapJson(value, openLeaf, openLeaf);
}

/** True for a text that may have been sealed as a whole. */
function isOneSealed(text: string): boolean {
  // Only the last bracket opens: an author's `[sealed:` before a sealed text is not part of it.
  return text.startsWith("[sealed:") && text.indexOf("]") === text.length - 1 && text.lastIndexOf("[") === 0;
}

function noteSensitive(json: string, secrets: Pick<Secrets, "note">): Json {
  const data = JSON.parse(json) as Json;
  secrets.note(data, SENSITIVE);
  return data;
}
