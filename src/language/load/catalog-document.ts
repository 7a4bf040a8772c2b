import { CATALOG_PATH_MAX, type ResourceKind } from "../../schema/api/catalog.ts";
import { SubscriptionDocument } from "../../schema/documents/subscription-document.ts";
import { TriggerDocument } from "../../schema/documents/trigger-document.ts";
import type { TriggerOf } from "../../schema/triggers/trigger.ts";
import type { Diagnostic } from "../../schema/words/diagnostic.ts";
import { isJsonObject, type JsonObject } from "../../schema/words/json.ts";
import type { Playbook } from "../../schema/words/playbook.ts";
import { plainPath, readPath } from "../document/catalog-path.ts";
import { readMcp } from "../document/mcp.ts";
import { checkShape } from "../document/shape.ts";
import type { Report } from "../document/source/findings.ts";
import { didYouMean } from "../document/source/hints.ts";
import { type OpenDocument, openDocument } from "../document/source/open.ts";
import { field, nameOf, type Place, textOf } from "../document/source/place.ts";
import { checkApart } from "../document/templates.ts";
import { readTriggerDocument } from "../document/triggers/read-triggers.ts";
import { readSubscription } from "../document/triggers/subscription.ts";
import { readPlaybookDocument } from "./load.ts";

/** A valid document as the catalog keeps it. */
export interface CatalogDocument {
  kind: ResourceKind;
  path: string;
  metadata: JsonObject;
  /** The whole document as its author wrote it, nothing normalised. */
  payload: JsonObject;
  /** The same, normalised; undefined for an MCP resource. */
  playbook: Playbook | undefined;
  /** What it makes start by itself. */
  triggers: TriggerOf[];
}

/** {@link loadCatalogDocument}'s answer. */
export interface LoadedCatalogDocument {
  /** Present exactly when no diagnostic is an error. */
  document?: CatalogDocument;
  diagnostics: Diagnostic[];
}

/**
 * Reads any document that the catalog takes: playbooks, agents (playbooks with `metadata.agent: true`, or of kind Agent)
 * and MCP resources. As `loadPlaybook`, it never throws and takes bounded time.
 */
export function loadCatalogDocument(source: string | Uint8Array, file: string): LoadedCatalogDocument {
  const { value, diagnostics } = openDocument(source, file, readCatalogDocument);
  return value === undefined ? { diagnostics } : { document: value, diagnostics };
}

const DOCUMENT_KINDS = ["Playbook", "Agent", "Mcp", "Trigger", "Subscription"];

function readCatalogDocument(document: OpenDocument): CatalogDocument {
  const { root, reading } = document;
  const kind = field(root, "kind");
  const written = textOf(kind);
  let playbook: Playbook | undefined;
  let apart: TriggerOf[] = [];
  if (written === "Mcp") readMcp(reading, root);
  else if (written === "Trigger" || written === "Subscription") apart = readTriggerApart(document, written);
  else if (written === undefined || DOCUMENT_KINDS.includes(written)) playbook = readPlaybookDocument(document);
  else {
    // Its keys belong to another kind of document: errors in them are not worth reporting.
    const message = `\`kind\` must be ${DOCUMENT_KINDS.join(", ")}, not \`${written}\``;
    reading.report("wrong-value", kind, message, () => didYouMean(written, DOCUMENT_KINDS));
  }
  const metadata = field(root, "metadata");
  const place = field(metadata, "path") ?? field(metadata, "name");
  const path = readPath(reading, metadata) ?? textOf(place);
  checkPath(place, path, reading.report);
  checkStorable(document);
  return {
    kind: kindOf(written, metadata),
    path: path ?? "",
    metadata: objectOf(metadata?.value),
    payload: objectOf(root.value),
    playbook,
    triggers: playbook === undefined ? apart : reading.triggers.map((trigger) => ({ path: path ?? "", trigger })),
  };
}

/** The trigger of a document that has nothing else. */
function readTriggerApart({ text, root, reading }: OpenDocument, kind: "Trigger" | "Subscription"): TriggerOf[] {
  const isSubscription = kind === "Subscription";
  checkShape(root, isSubscription ? SubscriptionDocument : TriggerDocument, reading.report);
  const { playbook, trigger } = isSubscription ? readSubscription(reading, root) : readTriggerDocument(reading, root);
  checkApart(text, reading.apart, reading.report);
  const path = plainPath(playbook);
  const place = isSubscription ? field(field(field(root, "spec"), "dispatch"), "playbook") : field(root, "playbook");
  checkPath(place, path, reading.report);
  return trigger === undefined ? [] : [{ path, trigger }];
}

function kindOf(written: string | undefined, metadata: Place | undefined): ResourceKind {
  if (written === "Mcp") return "mcp";
  if (written === "Trigger" || written === "Subscription") return "trigger";
  const agent = field(metadata, "agent")?.value;
  return agent === true || (written === "Agent" && agent !== false) ? "agent" : "playbook";
}

function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** A path that no address can name would be registered and never found: clients resolve `.`, `..` and doubled slashes. */
function checkPath(place: Place | undefined, path: string | undefined, report: Report): void {
  if (place === undefined || path === undefined) return;
  const why = whyNoPath(path);
  if (why === undefined) return;
  report("wrong-value", place, `\`${place.key}\` cannot be a catalog path: ${why}`, "write it as `area/topic/name`");
}

/** Why a text can be no path of the catalog; undefined where it can. */
export function whyNoPath(path: string): string | undefined {
  if (path.length > CATALOG_PATH_MAX)
    return `it has ${path.length} characters, ${CATALOG_PATH_MAX} at most are allowed`;
  if (/[\u0000-\u001f\u007f\\]/.test(path)) return "it has a backslash or a control character";
  const segments = path.split("/");
  if (segments.some((segment) => segment.trim() === "")) return "a part between its slashes is empty";
  if (segments.some((segment) => segment === "." || segment === "..")) return "a part of it is `.` or `..`";
  return undefined;
}

/** PostgreSQL keeps no text with U+0000 or half a surrogate pair. In a document's values only an escape can write them. */
function checkStorable({ text, root, reading }: OpenDocument): void {
  const half = text.search(SURROGATE_HALF);
  if (half >= 0) {
    const hint = "write both halves of the pair, or the character itself";
    reading.report("not-utf8", undefined, "the text has half of a surrogate pair", hint, half);
  }
  checkTexts(root, reading.report);
}

function checkTexts(place: Place, report: Report): void {
  // Half characters in values are refused when the document is read; in keys they are legal there.
  const keys = [...place.fields.keys()];
  const texts = typeof place.value === "string" ? [place.value] : keys;
  if (texts.some((text) => text.includes("\u0000")) || keys.some((key) => SURROGATE_HALF.test(key))) {
    const message = `${nameOf(place)} has a character that cannot be stored`;
    report("wrong-value", place, message, "leave out U+0000, and write both halves of a surrogate pair");
  }
  for (const inner of place.fields.values()) checkTexts(inner, report);
  for (const inner of place.items) checkTexts(inner, report);
}

const SURROGATE_HALF = /\p{Surrogate}/u;
