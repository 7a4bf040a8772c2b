import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useMemo, useState } from "react";
import { answerOf, api } from "../api/client.ts";
import type { Resource } from "../api/types.ts";
import { Field } from "./field.tsx";
import { fieldsOf, keepInputs, lastInputs, parsedInput, textOf } from "./inputs.ts";

/** A field for each key of the workload, filled with what was used last, and with the default before that. */
export function RunForm({ entry }: { entry: Resource }): ReactNode {
  const fields = useMemo(() => fieldsOf(entry.payload), [entry.payload]);
  const [texts, setTexts] = useState(() => {
    const kept = lastInputs(entry.path);
    return Object.fromEntries(
      fields.map(({ name, kind, initial }) => [name, textOf(kind, Object.hasOwn(kept, name) ? kept[name] : initial)]),
    );
  });
  const navigate = useNavigate();
  const run = useMutation({
    mutationFn: (workload: Record<string, unknown>) => {
      const isAgent = entry.kind === "agent" || entry.metadata["agent"] === true;
      return answerOf(
        api.POST("/api/execute", {
          body: {
            path: entry.path,
            version: entry.version,
            workload: workload as Record<string, never>,
            ...(isAgent && { resource_kind: "agent" as const }),
          },
        }),
      );
    },
    onSuccess: ({ execution_id }, workload) => {
      keepInputs(entry.path, workload);
      void navigate({ to: "/executions/$executionId", params: { executionId: execution_id } });
    },
  });
  const [problem, setProblem] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    try {
      const workload: Record<string, unknown> = {};
      for (const field of fields) workload[field.name] = parsedInput(field, texts[field.name] ?? "");
      setProblem("");
      run.mutate(workload);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <form className="panel stack" onSubmit={submit}>
      {fields.length === 0 && <p className="quiet">It takes no inputs.</p>}
      {fields.map((field) => (
        <Field
          key={field.name}
          field={field}
          text={texts[field.name] ?? ""}
          onText={(text) => setTexts((before) => ({ ...before, [field.name]: text }))}
        />
      ))}
      {(problem !== "" || run.isError) && (
        <p role="alert" className="tone-bad wrap">
          {problem !== "" ? problem : run.error?.message}
        </p>
      )}
      <div className="row">
        <button type="submit" className="main" disabled={run.isPending}>
          {run.isPending ? "Starting …" : "Run"}
        </button>
        <button
          type="button"
          onClick={() =>
            setTexts(Object.fromEntries(fields.map(({ name, kind, initial }) => [name, textOf(kind, initial)])))
          }
        >
          Defaults
        </button>
      </div>
    </form>
  );
}
