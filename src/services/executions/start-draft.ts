import { deleteUnusedDraft, insertDraft } from "../../repositories/catalog/drafts.ts";
import type { Database } from "../../repositories/database/database.ts";
import { reserveIds } from "../../repositories/database/ids.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { invalidDocument } from "../catalog/catalog.ts";
import type { DocumentCaller, Documents } from "../catalog/documents.ts";
import type { ExecutionRequest, Started } from "./start-execution.ts";

/** A text to run as it is. */
export interface DraftRequest
  extends Omit<ExecutionRequest, "path" | "catalogId" | "version" | "resourceKind" | "parent"> {
  content: string;
  /** Who wants the text read. */
  caller: DocumentCaller;
  /** Whether the caller may change and start the path that the text names; refuses by throwing. */
  permit(path: string): Promise<void>;
}

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
    const { document, diagnostics } = await documents.read(content, caller);
    if (document === undefined) throw invalidDocument(diagnostics, "The draft was not run");
    const { path, kind } = document;
    if (kind !== "playbook" && kind !== "agent") {
      throw new FlowError("INVALID_INPUT", `The draft was not run: it is of kind '${kind}', and only playbooks run`);
    }
    await request.permit(path);
    const [catalogId] = await reserveIds(database, 1);
    if (catalogId === undefined) throw new FlowError("INTERNAL", "no id was reserved");
    // Before the start, which reads it by its id. If this process dies in between, a sweep finds it.
    await insertDraft(database, { catalogId, path, kind, content });
    try {
      const started = await start({ ...request, catalogId, resourceKind: kind });
      if (started.duplicate) await deleteUnusedDraft(database, catalogId);
      return started;
    } catch (error) {
      // Of another error it is not known whether the execution was written.
      if (error instanceof FlowError && !UNKNOWN.has(error.code)) await deleteUnusedDraft(database, catalogId);
      throw error;
    }
  };
}

const UNKNOWN: ReadonlySet<string> = new Set(["UNAVAILABLE", "INTERNAL", "TIMEOUT"]);
