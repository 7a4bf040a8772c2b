import type { Program } from "../../engine/program/program.ts";
import { unknownInputsInPieces } from "../../engine/program/unknown-inputs.ts";
import { plainPath } from "../../language/document/catalog-path.ts";
import type { Database } from "../../repositories/database/database.ts";
import { findExecutables, findExecutableVersion } from "../../repositories/orchestration/find-startable.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { Documents } from "../catalog/documents.ts";
import { inPieces } from "../in-pieces.ts";
import { type CommandProgram, compileText } from "../orchestration/memory/program-cache.ts";
import type { Orchestrator, StartPreview as Preview } from "../orchestration/orchestrator.ts";
import { type Draft, readDraft } from "./start-draft.ts";

/** What would be started: a version of a path, the newest by default, or a text. */
export type PreviewRequest = { input: JsonObject } & (
  | { path: string; version?: number; permit(path: string): Promise<void> }
  | Draft
);

/** What it would start with. */
export interface StartPreview extends Preview {
  path: string;
  version: number;
  /** Warnings about its inputs, a sentence each. */
  warnings: string[];
}

interface PreviewDeps {
  database: Database;
  documents: Pick<Documents, "read" | "registered">;
  orchestrator: Pick<Orchestrator, "preview">;
  programs(catalogId: string): Promise<CommandProgram>;
}

/**
 * What a start would begin with: the same check and the same templates, and nothing is written. Whether the start itself would be refused,
 * as for a paused playbook, is not asked. Rejects with `FlowError` NOT_FOUND, INVALID_PLAYBOOK, INVALID_INPUT if a default cannot be
 * rendered, and with what `permit` throws.
 */
export function previewStarts(deps: PreviewDeps): (request: PreviewRequest) => Promise<StartPreview> {
  return async (request) => {
    const { input } = request;
    const { program, path, version } = await programOf(deps, request);
    const preview = await deps.orchestrator.preview(program, input);
    return { ...preview, path, version, warnings: await inPieces(unknownInputsInPieces(program, input)) };
  };
}

async function programOf(
  { database, documents, programs }: PreviewDeps,
  request: PreviewRequest,
): Promise<{ program: Program; path: string; version: number }> {
  if ("content" in request) {
    const { path, content } = await readDraft(documents, request, "Its start was not worked out");
    return { program: await compileText(documents, content, `${path}@draft`), path, version: 0 };
  }
  const { version, permit } = request;
  const path = plainPath(request.path);
  // Before the lookup: a refused caller must not learn whether it exists.
  await permit(path);
  const [newest] = version === undefined ? await findExecutables(database, [path]) : [];
  const entry = version === undefined ? newest : await findExecutableVersion(database, path, version);
  if (entry?.kind === "playbook" || entry?.kind === "agent") return await programs(entry.catalogId);
  throw new FlowError("NOT_FOUND", "Executable catalog entry not found");
}
