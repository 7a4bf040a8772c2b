import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo, useState } from "react";
import { api } from "../api/client.ts";
import type { Execution, Step } from "../api/types.ts";
import { DiffView } from "../parts/json/diff-view.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { Status } from "../parts/status.tsx";
import { durationText } from "../parts/time.ts";
import { loopText } from "./traced/step-state.ts";

/** Steps that are listed before the user asks for more. */
const SHOWN = 50;

/** The steps of two runs beside each other: those that ended in another way first. */
export function StepDifferences({ before, after }: { before: Execution; after: Execution }): ReactNode {
  const rows = useMemo(() => paired(before.steps, after.steps), [before.steps, after.steps]);
  const [shown, setShown] = useState(SHOWN);
  const [chosen, setChosen] = useState<string>();
  const other = rows.filter(({ isOther }) => isOther).length;
  return (
    <section className="panel stack" aria-label="Steps of both runs">
      <h3>
        Steps <span className="quiet">{other === 0 ? "all ended the same way" : `${other} ended in another way`}</span>
      </h3>
      <div className="scroll">
        <table>
          <thead>
            <tr>
              <th>Step</th>
              <th>There</th>
              <th>Here</th>
              <th>Outputs</th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, shown).map(({ name, one, two, isOther }) => (
              <tr key={name} className={isOther ? "changed" : undefined}>
                <th scope="row">{name}</th>
                <Side step={one} />
                <Side step={two} />
                <td>
                  {one?.status === "COMPLETED" && two?.status === "COMPLETED" && (
                    <button type="button" aria-pressed={chosen === name} onClick={() => setChosen(name)}>
                      Compare
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > shown && (
        <button type="button" onClick={() => setShown(shown + 500)}>
          {rows.length - shown} steps more
        </button>
      )}
      {chosen !== undefined && (
        <Outputs key={chosen} step={chosen} before={before.execution_id} after={after.execution_id} />
      )}
    </section>
  );
}

function Side({ step }: { step: Step | undefined }): ReactNode {
  if (step === undefined) return <td className="quiet">not there</td>;
  return (
    <td>
      <Status of={step.status} /> {step.duration_ms !== null && durationText(step.duration_ms)}
      {step.loop !== undefined && <span className="quiet"> {loopText(step.loop, step.ended_at !== null)}</span>}
    </td>
  );
}

function Outputs({ step, before, after }: { step: string; before: string; after: string }): ReactNode {
  const one = useQuery(stepResult(before, step));
  const two = useQuery(stepResult(after, step));
  const error = one.error ?? two.error;
  if (error !== null) return <ProblemPanel error={error} />;
  if (one.data === undefined || two.data === undefined) return <p className="quiet">Loading …</p>;
  return <DiffView label={`Output of ${step}`} before={one.data} after={two.data} />;
}

/** The stored result of a step; a large one is compared by its reference's checksum and fields. */
function stepResult(executionId: string, step: string) {
  return {
    queryKey: ["step-result", executionId, step],
    staleTime: 30_000,
    queryFn: async ({ signal }: { signal: AbortSignal }) => {
      const path = { execution_id: executionId };
      const { result } = await api("GET /api/executions/:execution_id/result", {
        params: path,
        query: { step },
        signal,
      });
      return comparable(result);
    },
  };
}

/** Times and places of their own are no difference between two runs. */
function comparable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(comparable);
  if (typeof value !== "object" || value === null) return value;
  const { about: _about, ...fields } = value as Record<string, unknown>;
  if (fields["kind"] === "result_ref") {
    const { meta, extracted, preview } = fields as { meta?: { bytes?: number; sha256?: string } } & typeof fields;
    return { stored: { bytes: meta?.bytes, sha256: meta?.sha256 }, extracted, preview };
  }
  // A part of a list's manifest has its checksum beside its reference, which differs in each run.
  if (typeof fields["task"] === "string" && typeof fields["sha256"] === "string") delete fields["ref"];
  return Object.fromEntries(Object.entries(fields).map(([key, inner]) => [key, comparable(inner)]));
}

interface Pair {
  name: string;
  one: Step | undefined;
  two: Step | undefined;
  isOther: boolean;
}

function paired(before: readonly Step[], after: readonly Step[]): Pair[] {
  const there = new Map(before.map((step) => [step.name, step]));
  const here = new Map(after.map((step) => [step.name, step]));
  const names = [...new Set([...here.keys(), ...there.keys()])];
  const pairs = names.map((name) => {
    const [one, two] = [there.get(name), here.get(name)];
    const isOther =
      one?.status !== two?.status || one?.loop?.failed !== two?.loop?.failed || one?.loop?.total !== two?.loop?.total;
    return { name, one, two, isOther };
  });
  return [...pairs.filter(({ isOther }) => isOther), ...pairs.filter(({ isOther }) => !isOther)];
}
