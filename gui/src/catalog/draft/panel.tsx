import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import { isJsonObject, type JsonObject } from "../../../../src/schema/words/json.ts";
import { api } from "../../api/client.ts";
import { useIdempotencyKey } from "../../api/idempotency.ts";
import type { Validation } from "../../api/types.ts";
import { type Allowed, useAllowed } from "../../parts/allowed.ts";
import { InputForm } from "../run/input-form.tsx";
import type { InputField, RunSubject } from "../run/inputs.ts";
import { keepInputs, lastInputs } from "../run/last-inputs.ts";
import type { Source } from "../source/read-source.ts";
import { RunOutcome } from "./outcome.tsx";
import { PanelHead } from "./panel-head.tsx";

/** Runs the text of the editor as it is, without registering it. The inputs are those that the text declares. */
export function DraftPanel({
  text,
  source,
  validation,
  onClose,
}: {
  text: string;
  source: Source | undefined;
  /** What the server says of the text as it is; undefined while it is not known. */
  validation: Validation | undefined;
  onClose(): void;
}): ReactNode {
  const subject = useSubject(text, source);
  const path = validation?.path ?? subject?.path;
  const may = useMayRun(path);
  const run = useDraftRun(text, subject?.path ?? "");
  const why = whyNot(validation);
  return (
    <section className="panel stack" aria-labelledby="draft-title">
      <PanelHead id="draft-title" title="Run this draft" onClose={onClose} />
      <p className="quiet wrap">
        Runs the text as it stands{path !== undefined && <> under {path}</>}, without registering it. It is listed as a
        draft, fires no triggers and counts in no statistics; what its tasks do outside is as real as in any run.
      </p>
      {why !== undefined && (
        <p role="status" className="note tone-bad wrap">
          {why}
        </p>
      )}
      {subject !== undefined && (
        <InputForm
          key={subject.path}
          subject={subject}
          filled={lastInputs(subject.path)}
          may={why === undefined ? may : { allowed: false, why }}
          run={run}
          label="Run draft"
          of={why === undefined && validation !== undefined ? { content: text } : undefined}
        />
      )}
      {run.data !== undefined && <RunOutcome key={run.data} executionId={run.data} />}
    </section>
  );
}

/** Why a text cannot run, in a sentence; undefined where it can, as far as is known. */
export function whyNot(validation: Validation | undefined): string | undefined {
  if (validation === undefined) return undefined;
  const errors = validation.messages.filter(({ severity }) => severity === "error");
  const [first] = errors;
  if (first !== undefined) {
    const more = errors.length === 1 ? "" : ` ${errors.length - 1} more below.`;
    return `This text cannot run: ${first.message} (line ${first.line}).${more}`;
  }
  if (validation.kind === "playbook" || validation.kind === "agent") return undefined;
  return `A document of kind ${validation.kind ?? "?"} cannot run: only playbooks run.`;
}

/** Who runs a text under a path does what registering it there and starting it would do. */
export function useMayRun(path: string | undefined): Allowed {
  const change = useAllowed("modify", { path, to: "run drafts of" });
  const execute = useAllowed("execute", { path });
  return change.allowed ? execute : change;
}

/** What the form is for: the last text that could be read. */
function useSubject(text: string, source: Source | undefined): RunSubject | undefined {
  return useMemo(() => {
    if (source === undefined) return undefined;
    const { payload } = source;
    const metadata = isJsonObject(payload["metadata"]) ? payload["metadata"] : {};
    const path = String(metadata["path"] ?? metadata["name"] ?? "").replace(/^\/+/, "");
    return { path, payload, content: text };
  }, [source, text]);
}

function useDraftRun(text: string, path: string) {
  const key = useIdempotencyKey();
  return useMutation({
    mutationFn: async ({ workload }: { workload: JsonObject; fields: readonly InputField[] }) => {
      const body = { content: text, workload: workload as never };
      const { execution_id } = await api("POST /api/execute/draft", { body, headers: key.of(body) });
      return execution_id;
    },
    onSuccess: (_, { workload, fields }) => {
      key.answered();
      keepInputs(path, fields, workload);
    },
  });
}
