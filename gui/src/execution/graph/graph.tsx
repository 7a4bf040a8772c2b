import { useQueries, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import type { Execution, Step } from "../../api/types.ts";
import { ProblemPanel } from "../../parts/problem.tsx";
import { type Drawn, graphOf } from "../traced/arcs.ts";
import { countText } from "../traced/count-text.ts";
import { mostTelling } from "../traced/most-telling.ts";
import { runDocument } from "../traced/run-document.ts";
import type { TracedExecution } from "../traced/trace-row.ts";
import { type Moment, useTraced } from "../traced/use-traced.ts";
import { useSelection } from "../use-selection.ts";
import { Drawing, type DrawingActions } from "./drawing.tsx";
import { around, WHOLE_MAX } from "./neighbourhood.ts";
import { itemsOf, type Shown } from "./shown.ts";

const NOTHING: DrawingActions = { chosen: undefined, onStep: undefined, onFold: undefined };
const NO_STATES: ReadonlyMap<string, Step> = new Map();

/** The playbook as it ran: what was taken in full, what was not dimmed. Loops and called playbooks are opened in place. */
export default function Graph({ execution, moment }: { execution: Execution; moment: Moment | undefined }): ReactNode {
  const selection = useSelection(execution);
  // The picture must not move by itself while the user looks around in it.
  const [first] = useState(() => mostTelling(execution.steps));
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [calls, setCalls] = useState<readonly string[]>([]);
  const { root, called } = useTraced(execution, calls, moment);
  const entry = useQuery(runDocument(execution));
  const drawn = useDrawn([...called.values()]);
  const navigate = useNavigate({ from: "/executions/$executionId" });
  const centre = selection.in === undefined ? (selection.step ?? first) : first;
  const whole = useMemo(() => (entry.data === undefined ? undefined : graphOf(entry.data.payload)), [entry.data]);
  const near = useMemo(() => (whole === undefined ? undefined : around(whole, centre)), [whole, centre]);
  const shown = useMemo(
    () => (near === undefined ? undefined : shownOf(root, near, { open, called, drawn })),
    [near, root, open, called, drawn],
  );
  if (entry.isError) return <ProblemPanel error={entry.error} again={() => void entry.refetch()} />;
  if (whole === undefined || shown === undefined) return <p className="quiet">Loading …</p>;
  if (whole.steps.length === 0) return <p className="quiet">It has no steps to draw.</p>;
  const fold = (step: string, executionId = execution.execution_id) => {
    const key = `${executionId}/${step}`;
    const owner = executionId === execution.execution_id ? root : called.get(executionId);
    const call = owner === undefined ? undefined : lastCall(owner, step);
    if (call !== undefined && !open.has(key)) setCalls((before) => [...new Set([...before, call])]);
    setOpen((before) => {
      const next = new Set(before);
      if (!next.delete(key)) next.add(key);
      return next;
    });
  };
  return (
    <div className="stack">
      {execution.steps.length > WHOLE_MAX && (
        <Centres
          steps={execution.steps}
          centre={centre}
          onCentre={(name) => void navigate({ search: (before) => ({ ...before, step: name }), replace: true })}
        />
      )}
      <LeftOut whole={whole} near={shown.drawn} centre={centre} />
      <Drawing
        shown={shown}
        centre={centre}
        actions={{
          chosen:
            selection.step === undefined
              ? undefined
              : { step: selection.step, executionId: selection.in ?? execution.execution_id },
          onStep: (step, executionId) =>
            void navigate({
              search: (before) => ({
                ...before,
                tab: undefined,
                step,
                in: executionId === execution.execution_id ? undefined : executionId,
                command: undefined,
                iteration: undefined,
              }),
            }),
          onFold: fold,
        }}
      />
    </div>
  );
}

/** A document's steps and arrows, as it is written. */
export function PlaybookGraph({
  payload,
  beside,
}: {
  payload: Readonly<Record<string, unknown>>;
  /** It stands beside its text: the step that the text's cursor is in, and what choosing one does. */
  beside?: { step: string | undefined; onStep(step: string): void };
}): ReactNode {
  const whole = useMemo(() => graphOf(payload), [payload]);
  // Only a large one is drawn around a step, and anew for another.
  const centre = whole.steps.length > WHOLE_MAX ? beside?.step : undefined;
  const shown = useMemo(
    (): Shown => ({
      drawn: around(whole, centre),
      states: NO_STATES,
      taken: undefined,
      execution: undefined,
      inner: new Map(),
      items: new Map(),
    }),
    [whole, centre],
  );
  if (whole.steps.length === 0) return <p className="quiet">It has no steps to draw.</p>;
  const chosen = beside?.step === undefined ? undefined : { step: beside.step, executionId: undefined };
  return (
    <>
      <LeftOut whole={whole} near={shown.drawn} centre={centre} />
      <Drawing
        shown={shown}
        centre={undefined}
        actions={beside === undefined ? NOTHING : { ...NOTHING, chosen, onStep: beside.onStep }}
        isSteady={beside !== undefined}
      />
    </>
  );
}

function LeftOut({ whole, near, centre }: { whole: Drawn; near: Drawn; centre: string | undefined }): ReactNode {
  if (near.steps.length >= whole.steps.length) return null;
  return (
    <p className="quiet">
      {countText(whole.steps.length)} steps are too many for one picture: these are the {near.steps.length} nearest to{" "}
      <strong>{centre ?? whole.steps[0]?.name}</strong>.
    </p>
  );
}

/** The graphs of executions that were called. A user who may not see a playbook does not see it opened. */
function useDrawn(called: readonly TracedExecution[]): ReadonlyMap<string, Drawn> {
  const payloads = useQueries({
    queries: called.map(({ execution }) => ({ ...runDocument(execution), retry: false })),
    combine: (results) => results.map(({ data }) => data?.payload),
  });
  const ids = called.map(({ execution }) => execution.execution_id).join(" ");
  return useMemo(() => {
    const found = new Map<string, Drawn>();
    for (const [index, id] of ids.split(" ").entries()) {
      const payload = payloads[index];
      if (payload !== undefined) found.set(id, around(graphOf(payload), undefined));
    }
    return found;
  }, [ids, payloads]);
}

interface Opened {
  /** `execution/step` of what is opened. */
  open: ReadonlySet<string>;
  called: ReadonlyMap<string, TracedExecution>;
  drawn: ReadonlyMap<string, Drawn>;
}

/** What is drawn within each other no deeper than this: a playbook may call itself. */
const DEPTH_MAX = 6;

function shownOf(traced: TracedExecution, drawn: Drawn, opened: Opened, depth = 0): Shown {
  const { execution, traces } = traced;
  const states = new Map(execution.steps.map((step) => [step.name, step]));
  const inner = new Map<string, Shown>();
  const items = new Map<string, ReturnType<typeof itemsOf>>();
  for (const { name } of drawn.steps) {
    if (!opened.open.has(`${execution.execution_id}/${name}`)) continue;
    const state = states.get(name);
    if (state?.loop !== undefined) items.set(name, itemsOf(traces.get(name) ?? [], state));
    const call = lastCall(traced, name);
    const child = call === undefined ? undefined : opened.called.get(call);
    const graph = call === undefined ? undefined : opened.drawn.get(call);
    if (state?.loop === undefined && child !== undefined && graph !== undefined && depth < DEPTH_MAX) {
      inner.set(name, shownOf(child, graph, opened, depth + 1));
    }
  }
  return { drawn, states, taken: execution.arcs, execution, inner, items };
}

/** The execution that a step called last. */
function lastCall({ execution, traces }: TracedExecution, step: string): string | undefined {
  const calls = (traces.get(step) ?? []).flatMap(({ commands }) => commands.flatMap((command) => command.calls));
  const open = (execution.commands ?? []).find(
    (command) => command.step === step && (command.children ?? []).length > 0,
  );
  return open?.children?.[0] ?? calls.at(-1)?.id;
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
    ["Completed last", steps.findLast(({ status }) => status === "COMPLETED")?.name],
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
