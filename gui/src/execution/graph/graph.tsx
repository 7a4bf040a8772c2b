import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import { catalogEntry } from "../../api/queries.ts";
import type { Execution, Step } from "../../api/types.ts";
import { ProblemPanel } from "../../parts/problem.tsx";
import { mostTelling } from "../summary/most-telling.ts";
import { graphOf } from "./arcs.ts";
import { Drawing, type TakenArc } from "./drawing.tsx";
import { around, WHOLE_MAX } from "./neighbourhood.ts";

const route = getRouteApi("/executions/$executionId");

/** The playbook as it ran: what was taken in full, what was not dimmed. */
export default function Graph({ execution }: { execution: Execution }): ReactNode {
  const { step } = route.useSearch();
  // The picture must not move by itself while the user looks around in it.
  const [first] = useState(() => mostTelling(execution.steps));
  const entry = useQuery(catalogEntry(execution.path, String(execution.version)));
  const navigate = useNavigate({ from: "/executions/$executionId" });
  if (entry.isError) return <ProblemPanel error={entry.error} again={() => void entry.refetch()} />;
  if (entry.data === undefined) return <p className="quiet">Loading …</p>;
  const centre = step ?? first;
  return (
    <div className="stack">
      {execution.steps.length > WHOLE_MAX && (
        <Centres
          steps={execution.steps}
          centre={centre}
          onCentre={(name) => void navigate({ search: (before) => ({ ...before, step: name }), replace: true })}
        />
      )}
      <PlaybookGraph
        payload={entry.data.payload}
        steps={execution.steps}
        taken={execution.arcs}
        centre={centre}
        onStep={(name) => void navigate({ search: (before) => ({ ...before, tab: "steps", step: name }) })}
      />
    </div>
  );
}

/** A document's steps and arrows; with `steps`, how far each of them is. Of a large one what is near `centre`. */
export function PlaybookGraph({
  payload,
  steps,
  taken,
  centre,
  onStep,
}: {
  payload: Readonly<Record<string, unknown>>;
  steps: readonly Step[];
  taken?: readonly TakenArc[] | undefined;
  centre?: string | undefined;
  onStep?: (step: string) => void;
}): ReactNode {
  const whole = useMemo(() => graphOf(payload), [payload]);
  const drawn = useMemo(() => around(whole, centre), [whole, centre]);
  const states = useMemo(() => new Map(steps.map((step) => [step.name, step])), [steps]);
  if (whole.steps.length === 0) return <p className="quiet">It has no steps that could be drawn.</p>;
  return (
    <>
      {drawn.steps.length < whole.steps.length && (
        <p className="quiet">
          {whole.steps.length.toLocaleString("en")} steps are too many for one picture: these are the{" "}
          {drawn.steps.length} nearest to <strong>{centre ?? whole.steps[0]?.name}</strong>.
        </p>
      )}
      <Drawing drawn={drawn} states={states} taken={taken} centre={centre} onStep={onStep} />
    </>
  );
}

/** Around which step a large playbook is drawn. */
function Centres({
  steps,
  centre,
  onCentre,
}: {
  steps: readonly Step[];
  centre: string | undefined;
  onCentre(name: string): void;
}): ReactNode {
  const places = [
    ["The beginning", steps[0]?.name],
    ["What runs", steps.find(({ status }) => status === "RUNNING" || status === "WAITING")?.name],
    ["What failed", steps.findLast(({ status }) => status === "FAILED")?.name],
    ["What ended last", steps.findLast(({ status }) => status === "COMPLETED")?.name],
  ] as const;
  return (
    <div className="row">
      <span className="quiet">Around</span>
      {places.map(
        ([label, name]) =>
          name !== undefined && (
            <button key={label} type="button" aria-pressed={name === centre} onClick={() => onCentre(name)}>
              {label}
            </button>
          ),
      )}
      <form
        className="row"
        onSubmit={(event) => {
          event.preventDefault();
          const searched = String(new FormData(event.currentTarget).get("step") ?? "").trim();
          const found =
            steps.find(({ name }) => name === searched) ?? steps.find(({ name }) => name.includes(searched));
          if (searched !== "" && found !== undefined) onCentre(found.name);
        }}
      >
        <input name="step" aria-label="Draw around a step of this name" placeholder="Step …" />
      </form>
    </div>
  );
}
