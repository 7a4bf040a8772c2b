import type { ExecutionStore } from "../../ports/execution-store.ts";
import type { Database } from "../../repositories/database/database.ts";
import type { Documents } from "../catalog/documents.ts";
import type { Executions } from "../executions/executions.ts";
import type { Started } from "../executions/start-execution.ts";
import type { CommandProgram } from "../orchestration/memory/program-cache.ts";
import type { Orchestrator } from "../orchestration/orchestrator.ts";
import { type PreviewRequest, previewStarts, type StartPreview } from "./preview-start.ts";
import { type DraftRequest, startDrafts } from "./start-draft.ts";
import { type StepTest, type StepTestRequest, testSteps } from "./test-step.ts";

/** Texts that run without being registered. */
export interface Drafts {
  /** See {@link startDrafts}. */
  start(request: DraftRequest): Promise<Started>;
  /** See {@link testSteps}. */
  testStep(request: StepTestRequest): Promise<StepTest>;
  /** See {@link previewStarts}. */
  preview(request: PreviewRequest): Promise<StartPreview>;
}

/** What drafts need. */
export interface DraftsDeps {
  database: Database;
  documents: Pick<Documents, "read" | "registered">;
  executions: Pick<Executions, "start" | "cancel">;
  orchestrator: Pick<Orchestrator, "preview">;
  /** The log, to be read. */
  store: Pick<ExecutionStore, "find" | "eventsAfter" | "snapshotUpTo">;
  /** Compiled playbooks. */
  programs(catalogId: string): Promise<CommandProgram>;
}

/** The drafts of a database. */
export function createDrafts(deps: DraftsDeps): Drafts {
  const { start, cancel } = deps.executions;
  return {
    start: startDrafts({ ...deps, start }),
    testStep: testSteps({ ...deps, start, cancel: (id, reason) => cancel(id, { reason, cascade: true }) }),
    preview: previewStarts(deps),
  };
}
