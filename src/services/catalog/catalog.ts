import type { DiagnosticCode } from "../../language/document/source/codes.ts";
import {
  type CatalogEntry,
  type CatalogPause,
  type CatalogSummary,
  findById,
  findNewest,
  findVersion,
  insertCatalogEntry,
  listAgents,
  listResources,
  listVersions,
  writePause,
} from "../../repositories/catalog/catalog.ts";
import { findDraft } from "../../repositories/catalog/drafts.ts";
import { type Database, transaction } from "../../repositories/database/database.ts";
import { reserveIds } from "../../repositories/database/ids.ts";
import type { Page, Visible } from "../../repositories/database/page.ts";
import { findExecutables } from "../../repositories/orchestration/find-startable.ts";
import type { DocumentProblem, ResourceKind } from "../../schema/api/catalog.ts";
import type { TriggerOf } from "../../schema/triggers/trigger.ts";
import type { Diagnostic } from "../../schema/words/diagnostic.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import { encodeCursor, textCursor, versionCursor } from "../pagination-cursor.ts";
import { activateTriggers } from "./activate-triggers.ts";
import type { DocumentCaller, Documents } from "./documents.ts";
import { missingChildren } from "./missing-children.ts";
import type { ReadDocument } from "./read-document.ts";

/** What a caller registers. */
export interface Registration {
  content: string;
  /** What the caller takes the document for; a document of another kind is refused. */
  expectedKind?: ResourceKind;
  /** Make no version when the text equals the newest one's. Default false: every registration is a newer version. */
  ifChanged?: boolean;
  /** Refuse a document with a warning too. Default false. What the catalog lacks is no warning of the document itself. */
  strict?: boolean;
  /** Who registers. Default: the service itself. */
  caller?: DocumentCaller;
  /** Whether the caller may learn of a path whether it is registered. Default: of all. */
  maySee?(path: string): Promise<boolean>;
  /** Asked for the path of the document, and what it makes start, before anything is written; refuses by throwing. */
  permit?(path: string, triggers: readonly TriggerOf[]): Promise<void>;
  /** The user who registers, a row of `auth.users`. Default: an operator. */
  userId?: string;
}

/** What a registration gave. */
export interface Registered {
  catalogId: string;
  path: string;
  kind: ResourceKind;
  version: number;
  unchanged: boolean;
  warnings: DocumentProblem[];
}

/** What is to be said of a text. */
export interface Validated {
  /** Undefined where it has an error; `path` too. */
  kind: ResourceKind | undefined;
  path: string | undefined;
  messages: (DocumentProblem & Pick<Diagnostic, "severity">)[];
}

/** A page of a list; `nextCursor` is null on the last one. */
export interface Listed<T> {
  items: T[];
  nextCursor: string | null;
}

/** `limit` items from `cursor` on. Lists throw `FlowError` INVALID_INPUT for a cursor of another list. */
export interface PageQuery {
  limit: number;
  cursor?: string;
}

/** The use cases of the catalog. */
export interface Catalog {
  /**
   * Throws `FlowError` INVALID_PLAYBOOK with every problem of the document, INVALID_INPUT for an unexpected kind, and as
   * {@link Documents.read}.
   */
  register(registration: Registration): Promise<Registered>;
  /** What registering the text would say of it. Writes nothing. Throws as {@link Documents.read}. */
  validate(content: string, caller?: DocumentCaller): Promise<Validated>;
  /** The newest version of each path, in the order of paths. */
  list(
    page: PageQuery & Visible & { resourceType?: ResourceKind; prefix?: string; calls?: string },
  ): Promise<Listed<CatalogSummary & CatalogPause>>;
  /** One version, the newest by default, which says whether the path is paused. Throws `FlowError` NOT_FOUND. */
  find(path: string, version?: number): Promise<CatalogEntry & Partial<CatalogPause>>;
  /** Nothing of the path is started before `resume`. Throws `FlowError` NOT_FOUND. */
  pause(path: string, pause: { by: string; reason?: string }): Promise<CatalogPause & { isChanged: boolean }>;
  /** Throws `FlowError` NOT_FOUND. */
  resume(path: string): Promise<CatalogPause & { isChanged: boolean }>;
  /** One version or draft by its id. Throws `FlowError` NOT_FOUND. */
  entry(catalogId: string): Promise<Pick<CatalogEntry, "catalogId" | "path" | "version" | "kind" | "content">>;
  /** Versions of one path, newest first. Throws `FlowError` NOT_FOUND for a path without any. */
  versions(path: string, page: PageQuery): Promise<Listed<CatalogSummary>>;
  /** The newest version of each agent, in the order of paths; those that terminals are not to show only with `hidden`. */
  agents(page: PageQuery & Visible & { hidden?: boolean }): Promise<Listed<CatalogEntry>>;
}

/** The catalog that a database holds. `onRegistered` is called after each registration is committed. */
export function createCatalog(deps: {
  database: Database;
  documents: Documents;
  onRegistered(registered: Registered): void;
}): Catalog {
  const { database, documents } = deps;
  return {
    async register(registration) {
      const registered = await register(deps, registration);
      deps.onRegistered(registered);
      return registered;
    },
    async validate(content, caller) {
      const { document, diagnostics } = await documents.read(content, caller);
      const messages = diagnostics.map((diagnostic) => ({
        severity: diagnostic.severity,
        ...problemOf(diagnostic),
      }));
      return { kind: document?.kind, path: document?.path, messages };
    },
    list: async ({ cursor, ...rest }) =>
      listed(
        await listResources(database, { ...rest, ...(cursor === undefined ? {} : { cursor: textCursor(cursor) }) }),
      ),
    async find(path, version) {
      const entry = await findEntry(database, path, version);
      if (entry !== undefined) return entry;
      throw await notFound(database, path, version);
    },
    pause: (path, { by, reason }) => setPause(database, path, { by, reason }),
    resume: (path) => setPause(database, path, undefined),
    async entry(catalogId) {
      const entry = await findById(database, catalogId);
      if (entry !== undefined) return entry;
      const draft = await findDraft(database, catalogId);
      if (draft !== undefined) return { ...draft, version: 0 };
      throw new FlowError("NOT_FOUND", `There is no catalog entry ${catalogId}`);
    },
    async versions(path, { limit, cursor }) {
      const key = cursor === undefined ? {} : { cursor: versionCursor(cursor) };
      const page = isStorable(path) ? await listVersions(database, path, { limit, ...key }) : { items: [] };
      if (page.items.length === 0 && cursor === undefined) throw await notFound(database, path);
      return listed(page);
    },
    agents: async ({ cursor, ...rest }) =>
      listed(await listAgents(database, { ...rest, ...(cursor === undefined ? {} : { cursor: textCursor(cursor) }) })),
  };
}

async function setPause(
  database: Database,
  path: string,
  pause: { by: string; reason: string | undefined } | undefined,
): Promise<CatalogPause & { isChanged: boolean }> {
  const written = isStorable(path) ? await writePause(database, path, pause) : undefined;
  if (written === undefined) throw await notFound(database, path);
  return written;
}

async function register(
  { database, documents }: Pick<Parameters<typeof createCatalog>[0], "database" | "documents">,
  registration: Registration,
): Promise<Registered> {
  const { content, expectedKind, ifChanged = false, userId = null } = registration;
  const { document, diagnostics } = await documents.read(content, registration.caller);
  if (document === undefined) throw invalidDocument(diagnostics);
  if (registration.strict === true && diagnostics.length > 0) {
    throw invalidDocument(diagnostics.map((diagnostic) => ({ ...diagnostic, severity: "error" })));
  }
  const { path, kind, payload, metadata, triggers } = document;
  if (expectedKind !== undefined && expectedKind !== kind) throw unexpectedKind(path, kind, expectedKind);
  await registration.permit?.(path, triggers);
  const [catalogId, ...newIds] = await reserveIds(database, 1 + triggers.length);
  if (catalogId === undefined) throw new FlowError("INTERNAL", "no id was reserved");
  const written = await transaction(database, async (tx) => {
    // One statement: the head's row is locked, compared and advanced, and the version written, or nothing at all.
    const entry = await insertCatalogEntry(tx, { catalogId, path, kind, content, payload, metadata, ifChanged });
    if (entry.unchanged) return entry;
    await activateTriggers(tx, { document: path, version: entry.version, userId, triggers, newIds });
    return entry;
  });
  const { version, unchanged } = written;
  const missing = [childWarnings, targetWarnings].map((warn) => warn(database, document, registration));
  const warnings = [...diagnostics.map(problemOf), ...(await Promise.all(missing)).flat()];
  return { catalogId: written.catalogId, path, kind, version, unchanged, warnings };
}

/** Playbooks that it calls and that are not there. They may be registered later: a warning, and no keeping it out. */
async function childWarnings(
  database: Database,
  { path: own, calls }: ReadDocument,
  { maySee = () => Promise.resolve(true) }: Registration,
): Promise<DocumentProblem[]> {
  const registered = async (paths: readonly string[]) =>
    new Set((await findExecutables(database, paths)).map(({ path }) => path));
  const missing = await missingChildren(own, calls, { registered, maySee });
  return missing.map(({ path, step, stepIndex, position, why }) => ({
    ...position,
    path: `workflow[${stepIndex}]`,
    code: "unknown-playbook" satisfies DiagnosticCode,
    message: `\`${path}\`, which step \`${step}\` calls, ${why}`,
    hint: "register it before this playbook is run",
  }));
}

/** Playbooks of others that its triggers start, and that are not there: such a fire fails. */
async function targetWarnings(
  database: Database,
  { path: own, triggers }: ReadDocument,
  { content, maySee = () => Promise.resolve(true) }: Registration,
): Promise<DocumentProblem[]> {
  const targets = [...new Set(triggers.map(({ path }) => path))].filter((path) => path !== own);
  if (targets.length === 0) return [];
  const there = new Set((await findExecutables(database, targets)).map(({ path }) => path));
  const line = content.split("\n").findIndex((text) => /^\s*"?playbook"?\s*:/.test(text)) + 1;
  const warnings: DocumentProblem[] = [];
  for (const target of targets) {
    if (there.has(target) || !(await maySee(target))) continue;
    warnings.push({
      ...{ line: Math.max(1, line), column: 1, path: "playbook" },
      code: "unknown-playbook" satisfies DiagnosticCode,
      message: `\`${target}\`, which the trigger starts, is not in the catalog`,
      hint: "register it before the trigger fires",
    });
  }
  return warnings;
}

function listed<T>(page: Page<T, string | number>): Listed<T> {
  return { items: page.items, nextCursor: page.next === undefined ? null : encodeCursor(page.next) };
}

/** Every problem of a document that has errors. `refused`: what was not done. */
export function invalidDocument(
  diagnostics: readonly Diagnostic[],
  refused = "The document was not registered",
): FlowError {
  const of = (severity: Diagnostic["severity"]) =>
    diagnostics.filter((diagnostic) => diagnostic.severity === severity).map(problemOf);
  const errors = of("error");
  const message = `${refused}: it has ${errors.length} ${errors.length === 1 ? "error" : "errors"}`;
  const detail = { message: "Document validation failed", errors, warnings: of("warning") };
  // Problems are plain texts and numbers.
  return new FlowError("INVALID_PLAYBOOK", message, { detail: detail as unknown as Json });
}

function problemOf({ severity: _severity, file: _file, ...problem }: Diagnostic): DocumentProblem {
  return problem;
}

const HOW_TO_BE: Readonly<Record<ResourceKind, string>> = {
  playbook: "a playbook is a document of kind Playbook without `metadata.agent: true`",
  agent: "an agent is a playbook with `metadata.agent: true`",
  mcp: "an MCP resource is a document of kind Mcp",
  trigger: "a trigger apart from its playbook is a document of kind Trigger",
};

function unexpectedKind(path: string, kind: ResourceKind, expected: ResourceKind): FlowError {
  const said = `'${path}' was not registered: resource_type is '${expected}', but the document is of kind '${kind}'`;
  return new FlowError("INVALID_INPUT", `${said}; ${HOW_TO_BE[expected]}`);
}

async function findEntry(database: Database, path: string, version?: number): Promise<CatalogEntry | undefined> {
  if (!isStorable(path)) return undefined;
  return version === undefined ? await findNewest(database, path) : await findVersion(database, path, version);
}

/** Which of both is unknown, the path or its version, is what the caller wants to know next. */
async function notFound(database: Database, path: string, version?: number): Promise<FlowError> {
  const newest = version === undefined ? undefined : await findEntry(database, path);
  if (newest === undefined) return new FlowError("NOT_FOUND", `There is no catalog entry '${path}'`);
  return new FlowError("NOT_FOUND", `'${path}' has no version ${version}; its newest is ${newest.version}`);
}

/** PostgreSQL refuses the question whether a path with U+0000 exists. It does not. */
function isStorable(path: string): boolean {
  return !path.includes("\u0000");
}
