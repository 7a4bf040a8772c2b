import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import type { JsonObject } from "../../../../src/schema/words/json.ts";
import { api } from "../../api/client.ts";
import { useIdempotencyKey } from "../../api/idempotency.ts";
import { executionDetail } from "../../api/queries.ts";
import type { Resource } from "../../api/types.ts";
import { useAllowed } from "../../parts/allowed.ts";
import { ProblemPanel } from "../../parts/problem.tsx";
import { InputForm } from "./input-form.tsx";
import type { InputField } from "./inputs.ts";
import { keepInputs, lastInputs } from "./last-inputs.ts";

/** The form of a playbook's inputs, filled with those of another run where `from` names one, else with the last ones. */
export function RunForm({ entry, from }: { entry: Resource; from: string | undefined }): ReactNode {
  const other = useQuery({ ...executionDetail(from ?? ""), enabled: from !== undefined });
  if (from !== undefined && other.isError)
    return <ProblemPanel error={other.error} again={() => void other.refetch()} />;
  if (from !== undefined && other.data === undefined) return <p className="quiet">Loading the inputs of {from} …</p>;
  const filled = other.data === undefined ? lastInputs(entry.path) : (other.data.workload as JsonObject);
  return (
    <EntryForm key={from ?? ""} entry={entry} filled={filled} from={other.data === undefined ? undefined : from} />
  );
}

function EntryForm({
  entry,
  filled,
  from,
}: {
  entry: Resource;
  filled: JsonObject;
  from: string | undefined;
}): ReactNode {
  const may = useAllowed("execute", { path: entry.path });
  const of = useMemo(() => ({ path: entry.path, version: entry.version }), [entry]);
  return (
    <div className="panel">
      <InputForm subject={entry} filled={filled} may={may} run={useRun(entry)} label="Run" of={of}>
        {from !== undefined && (
          <p>
            With the inputs of{" "}
            <Link to="/executions/$executionId" params={{ executionId: from }}>
              {from}
            </Link>
            ; secrets are not copied.
          </p>
        )}
      </InputForm>
    </div>
  );
}

function useRun(entry: Resource) {
  const navigate = useNavigate();
  const key = useIdempotencyKey();
  return useMutation({
    mutationFn: ({ workload }: { workload: JsonObject; fields: readonly InputField[] }) => {
      const isAgent = entry.kind === "agent";
      const { path, version } = entry;
      const body = { path, version, workload: workload as never, ...(isAgent && { resource_kind: "agent" as const }) };
      return api("POST /api/execute", { body, headers: key.of(body) });
    },
    onSuccess: ({ execution_id }, { workload, fields }) => {
      key.answered();
      keepInputs(entry.path, fields, workload);
      void navigate({ to: "/executions/$executionId", params: { executionId: execution_id } });
    },
  });
}
