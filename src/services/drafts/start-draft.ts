import { deleteUnusedDraft, insertDraft } from "../../repositories/catalog/drafts.ts";
import type { Database } from "../../repositories/database/database.ts";
import { reserveIds } from "../../repositories/database/ids.ts";
import type { ResourceKind } from "../../schema/api/catalog.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { invalidDocument } from "../catalog/catalog.ts";
import type { DocumentCaller, Documents } from "../catalog/documents.ts";
import type { ExecutionRequest, Started } from "../executions/start-execution.ts";

/** A text that is not registered, and who has it run. */
export interface Draft {
  content: string;
  /** Who wants the text read. */
  caller: DocumentCaller;
  /** Whether the caller may change and start the path that the text names; refuses by throwing. */
  permit(path: string): Promise<void>;
}

/** A text to run as it is. */
export interface DraftRequest
  extends Omit<ExecutionRequest, "path" | "catalogId" | "version" | "resourceKind" | "parent" | "permit">,
    Draft {}

interface DraftDeps {
  database: Database;
  documents: Pick<Documents, "read">;
  start(request: ExecutionRequest): Promise<Started>;
}

/**
 * Runs a text without registering it: an execution of version 0, whose text is kept as long as it is. Nothing that follows from a version
 * does: its triggers are not activated, it counts in no statistics, and its end fires no trigger of others. What its tasks do outside is as
 * real as in any run. Rejects with `FlowError` INVALID_PLAYBOOK with every problem of the text, INVALID_INPUT for what is no playbook, and
 * with the errors of a start.
 */
export function startDrafts({ database, documents, start }: DraftDeps): (request: DraftRequest) => Promise<Started> {
  return async ({ content, caller, ...request }) => {
    const draft = await readDraft(documents, { content, caller, permit: request.permit }, "The draft was not run");
    return await keepingDraft(database, draft, (catalogId) =>
      start({ ...request, catalogId, resourceKind: draft.kind }),
    );
  };
}

/** A draft that runs, as it was read. */
export interface ReadDraft {
  path: string;
  kind: "playbook" | "agent";
  content: string;
}

/**
 * Reads a text and asks whether its caller may run it. `what` begins the refusals: "The draft was not run". Throws `FlowError`
 * INVALID_PLAYBOOK, INVALID_INPUT, and what `permit` throws.
 */
export async function readDraft(
  documents: Pick<Documents, "read">,
  { content, caller, permit }: Draft,
  what: string,
): Promise<ReadDraft> {
  const { document, diagnostics } = await documents.read(content, caller);
  if (document === undefined) throw invalidDocument(diagnostics, what);
  const { path, kind } = document;
  if (!isRunnable(kind))
    throw new FlowError("INVALID_INPUT", `${what}: it is of kind '${kind}', and only playbooks run`);
  await permit(path);
  return { path, kind, content };
}

function isRunnable(kind: ResourceKind): kind is ReadDraft["kind"] {
  return kind === "playbook" || kind === "agent";
}

/** Keeps a text for the execution that `start` begins with it, and forgets it if that fails. */
export async function keepingDraft<S extends { duplicate: boolean }>(
  database: Database,
  draft: ReadDraft,
  start: (catalogId: string) => Promise<S>,
): Promise<S> {
  const [catalogId] = await reserveIds(database, 1);
  if (catalogId === undefined) throw new FlowError("INTERNAL", "no id was reserved");
  // Before the start, which reads it by its id. If this process dies in between, a sweep finds it.
  await insertDraft(database, { catalogId, ...draft });
  try {
    const started = await start(catalogId);
    if (started.duplicate) await deleteUnusedDraft(database, catalogId);
    return started;
  } catch (error) {
    // Of another error it is not known whether the execution was written.
    if (error instanceof FlowError && !UNKNOWN.has(error.code)) await deleteUnusedDraft(database, catalogId);
    throw error;
  }
}

const UNKNOWN: ReadonlySet<string> = new Set(["UNAVAILABLE", "INTERNAL", "TIMEOUT"]);
