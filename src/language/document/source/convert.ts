import { type Document, isAlias, isMap, isScalar, isSeq, type Node, type Pair, type Scalar } from "yaml";
import type { Json, JsonObject } from "../../../schema/words/json.ts";
import type { Report } from "./findings.ts";
import type { Place } from "./place.ts";

/** Deepest nesting of maps and lists. Playbooks need about 15; reading recurses. */
export const NESTING_MAX = 200;

/** Most values that aliases may repeat. Nine aliases of nine aliases, nine levels deep, would be 3 × 10^8 values. */
export const ALIAS_VALUES_MAX = 10_000;

/** Hint for a template that YAML took for a map. */
export const QUOTE_TEMPLATE = 'put quotes around the template: "{{ … }}"';

/**
 * The document as JSON with places. Reports duplicate and unusable keys, aliases that lead nowhere or repeat too much,
 * and numbers that JSON cannot hold.
 */
export function convertDocument(document: Document.Parsed, text: string, report: Report): Place {
  const conversion: Conversion = { text, report, anchors: new Map(), targets: new Map(), repeated: 0 };
  const root = { parent: undefined, key: "", start: document.contents?.range[0] ?? 0, depth: 0, inAlias: false };
  return convert(conversion, document.contents, root);
}

interface Conversion {
  readonly text: string;
  readonly report: Report;
  /** Anchors so far, in the order of the text: a later one of the same name replaces the earlier. */
  readonly anchors: Map<string, Node>;
  /** What each alias meant when it was first met. */
  readonly targets: Map<Node, Node>;
  repeated: number;
}

/** Where a node is put: an alias puts the same node in several places. */
interface Slot {
  parent: Place | undefined;
  key: string | number;
  /** Offset of the key. */
  start: number;
  depth: number;
  inAlias: boolean;
}

type MutablePlace = { -readonly [K in keyof Place]: Place[K] };

const NO_FIELDS: ReadonlyMap<string, Place> = new Map();
const NO_ITEMS: readonly Place[] = [];

function convert(conversion: Conversion, node: Node | null, slot: Slot): Place {
  const place = emptyPlace(node, slot);
  if (node === null) return place;
  if (slot.inAlias && !countRepeated(conversion, place)) return place;
  if (slot.depth > NESTING_MAX) {
    conversion.report("too-deep", place, `aliases nest deeper than ${NESTING_MAX} levels`);
    return place;
  }
  if (isAlias(node)) return followAlias(conversion, node, place, slot);
  if (node.anchor !== undefined && !slot.inAlias) conversion.anchors.set(node.anchor, node);
  if (isScalar(node)) fillScalar(conversion, node, place);
  else if (isSeq(node)) fillList(conversion, node.items as (Node | Pair | null)[], place, slot);
  else if (isMap(node)) fillMap(conversion, node.items as Pair<Node, Node | null>[], place, slot);
  return place;
}

function emptyPlace(node: Node | null, slot: Slot): MutablePlace {
  const valueStart = node?.range?.[0] ?? slot.start;
  const valueEnd = node?.range?.[1] ?? valueStart;
  const { parent, key, start } = slot;
  return { value: null, parent, key, start, valueStart, valueEnd, fields: NO_FIELDS, items: NO_ITEMS, style: "none" };
}

/** Charges one value to the budget of aliases; false when it is spent. */
function countRepeated(conversion: Conversion, place: Place): boolean {
  conversion.repeated += 1;
  if (conversion.repeated === ALIAS_VALUES_MAX + 1) {
    const message = `aliases repeat more than ${ALIAS_VALUES_MAX.toLocaleString("en")} values`;
    conversion.report("alias-expansion", place, message, "write the values out, or give them as input");
  }
  return conversion.repeated <= ALIAS_VALUES_MAX;
}

function followAlias(conversion: Conversion, alias: Node & { source: string }, place: MutablePlace, slot: Slot): Place {
  const target = conversion.targets.get(alias) ?? conversion.anchors.get(alias.source);
  if (target === undefined) {
    const message = `\`*${alias.source}\` refers to no anchor before it`;
    conversion.report("unknown-alias", place, message, "put quotes around a text that begins with *");
    return asWritten(conversion, place);
  }
  conversion.targets.set(alias, target);
  if (contains(target, alias)) {
    conversion.report("alias-expansion", place, `\`*${alias.source}\` contains itself`);
    return place;
  }
  return convert(conversion, target, { ...slot, depth: slot.depth + 1, inAlias: true });
}

/** The value as its text in the document: what the author meant, so that no further problem is reported. */
function asWritten(conversion: Conversion, place: MutablePlace): Place {
  place.value = conversion.text.slice(place.valueStart, place.valueEnd);
  place.style = "plain";
  return place;
}

function contains(outer: Node, inner: Node): boolean {
  return outer.range !== undefined && outer.range !== null && inner.range !== undefined && inner.range !== null
    ? outer.range[0] <= inner.range[0] && inner.range[1] <= outer.range[1]
    : false;
}

function fillList(
  conversion: Conversion,
  nodes: readonly (Node | Pair | null)[],
  place: MutablePlace,
  slot: Slot,
): void {
  const value: Json[] = [];
  const items: Place[] = [];
  for (const [index, node] of nodes.entries()) {
    const item = node as Node | null;
    const start = item?.range?.[0] ?? place.valueStart;
    const child = convert(conversion, item, {
      parent: place,
      key: index,
      start,
      depth: slot.depth + 1,
      inAlias: slot.inAlias,
    });
    items.push(child);
    value.push(child.value);
  }
  place.value = value;
  place.items = items;
}

function fillMap(
  conversion: Conversion,
  pairs: readonly Pair<Node, Node | null>[],
  place: MutablePlace,
  slot: Slot,
): void {
  const { report } = conversion;
  // `{{ name }}` without quotes is, to YAML, a map whose only key is a map.
  if (conversion.text.startsWith("{{", place.valueStart) && pairs.some((pair) => !isScalar(pair.key))) {
    asWritten(conversion, place);
    report(
      "unquoted-template",
      place,
      "a template must stand in quotes: YAML reads its braces as a map",
      QUOTE_TEMPLATE,
    );
    return;
  }
  const value: JsonObject = {};
  const fields = new Map<string, Place>();
  for (const pair of pairs) {
    const start = pair.key?.range?.[0] ?? place.valueStart;
    const key = readKey(conversion, pair, place, start);
    const first = key === undefined ? undefined : fields.get(key);
    if (first !== undefined)
      report("duplicate-key", first, `key \`${key}\` is here twice`, "remove one of the two", start);
    if (key === undefined || first !== undefined) continue;
    const { inAlias } = slot;
    const child = convert(conversion, pair.value, { parent: place, key, start, depth: slot.depth + 1, inAlias });
    fields.set(key, child);
    value[key] = child.value;
  }
  place.value = value;
  place.fields = fields;
}

/** The key as text, or undefined when it cannot be one (which is reported). */
function readKey({ report }: Conversion, pair: Pair<Node, Node | null>, map: Place, start: number): string | undefined {
  if (!isScalar(pair.key)) {
    report("bad-key", map, "a key must be text", "put quotes around it", start);
    return undefined;
  }
  const key = typeof pair.key.value === "string" ? pair.key.value : (pair.key.source ?? String(pair.key.value));
  if (key !== "__proto__") return key;
  report("reserved-key", map, "a key must not be called `__proto__`", "give it another name", start);
  return undefined;
}

const STYLES: Readonly<Record<string, Place["style"]>> = {
  PLAIN: "plain",
  QUOTE_SINGLE: "quoted",
  QUOTE_DOUBLE: "quoted",
  BLOCK_LITERAL: "literal",
  BLOCK_FOLDED: "folded",
};

/** A lone surrogate: UTF-8 cannot encode it, so that it could be neither stored nor sent. */
const HALF_CHARACTER = /\p{Surrogate}/u;

function fillScalar(conversion: Conversion, node: Scalar, place: MutablePlace): void {
  const { value } = node;
  place.style = STYLES[node.type ?? ""] ?? "none";
  if (typeof value === "string" || typeof value === "boolean") {
    place.value = value;
    if (typeof value === "string" && HALF_CHARACTER.test(value)) {
      const hint = "write the whole character, or its escape as \\U and eight digits";
      conversion.report("not-text", place, "an escape gives half a character (a lone surrogate)", hint);
    }
  } else if (typeof value === "number") {
    place.value = Number.isFinite(value) ? value : null;
    if (!Number.isFinite(value)) {
      conversion.report(
        "not-json",
        place,
        `${node.source ?? value} is no number that JSON can hold`,
        "put quotes around it",
      );
    } else if (!Number.isSafeInteger(value) && /^[-+]?\d+$/.test(node.source ?? "")) {
      const message = `${node.source} is beyond 2^53 and was read as ${value}`;
      conversion.report("imprecise-number", place, message, "put quotes around it to keep every digit");
    }
  }
}
