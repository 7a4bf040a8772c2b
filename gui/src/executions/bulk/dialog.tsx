import { keepPreviousData, useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import type { BulkStartAnswer } from "../../../../src/schema/api/steering.ts";
import { FILTER_IDS_MAX } from "../../../../src/schema/rules/execution-filter.ts";
import { api } from "../../api/client.ts";
import { useIdempotencyKey } from "../../api/idempotency.ts";
import { queries } from "../../api/queries.ts";
import { useAllowed } from "../../parts/allowed.ts";
import { AllowedButton } from "../../parts/allowed-button.tsx";
import { DialogEnd } from "../../parts/dialog-end.tsx";
import { Ago } from "../../parts/now.tsx";
import { Status } from "../../parts/status.tsx";
import type { ExecutionFilters } from "../filter/queries.ts";
import { type BulkAction, type BulkForm, bulkBody, filterText, firstForm } from "./request.ts";

/** Cancels, pauses, resumes or reruns the marked executions, or all that match the filters. A preview shows which these are. */
export function BulkButtons({
  filters,
  marked,
  onDone,
}: {
  filters: ExecutionFilters;
  marked: ReadonlySet<string>;
  onDone(): void;
}): ReactNode {
  const [only, setOnly] = useState<ReadonlySet<string> | "all" | undefined>();
  const may = useAllowed("execute", { to: "change executions" });
  return (
    <div className="row">
      {marked.size > 0 && (
        <AllowedButton may={may} className="main" onClick={() => setOnly(marked)}>
          {marked.size.toLocaleString("en")} marked …
        </AllowedButton>
      )}
      <AllowedButton may={may} data-command="Change all executions in this list …" onClick={() => setOnly("all")}>
        Act on all …
      </AllowedButton>
      {only !== undefined && (
        <BulkDialog
          filters={filters}
          only={only === "all" ? undefined : only}
          onClose={(isDone) => {
            setOnly(undefined);
            if (isDone) onDone();
          }}
        />
      )}
    </div>
  );
}

/** What is tried for marked executions, in this order: what has no paused ones is not resumed, what has ended is repeated. */
const FITTING: readonly [BulkAction, ...BulkAction[]] = ["resume", "cancel", "rerun"];

interface DialogProps {
  filters: ExecutionFilters;
  only: ReadonlySet<string> | undefined;
  onClose(isDone: boolean): void;
}

function BulkDialog({ filters, only, onClose }: DialogProps): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (dialog.current?.open === false) dialog.current.showModal();
  }, []);
  // The dialog is about the list at the time it was opened.
  const [list] = useState({ filters, only, now: Date.now() });
  const [form, setForm] = useState(() => ({
    ...firstForm(filters),
    ...(only !== undefined && { action: FITTING[0] }),
  }));
  const [isChosen, setChosen] = useState(only === undefined);
  const change = (part: Partial<BulkForm>) => {
    setForm((before) => ({ ...before, ...part }));
    if (part.action !== undefined) setChosen(true);
  };
  const body = useMemo(() => bulkBody(form, list.filters, list.only, list.now), [form, list]);
  const preview = usePreview(body);
  const bulk = useBulk(onClose);
  const matched = body === undefined ? 0 : preview.isPlaceholderData ? undefined : preview.data?.matched;
  // It opens at the action that fits what is marked, by the states that these have now.
  if (!isChosen && matched !== undefined) {
    const next = matched === 0 ? FITTING[FITTING.indexOf(form.action) + 1] : undefined;
    if (next === undefined) setChosen(true);
    else setForm({ ...form, action: next });
  }
  return (
    <dialog ref={dialog} className="bulk" aria-labelledby="bulk-title" onClose={() => onClose(false)}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (body !== undefined) bulk.mutate(body);
        }}
      >
        <h1 id="bulk-title">
          {only === undefined ? "All executions in this list" : `${executionsText(only.size)} marked`}
        </h1>
        <Choices form={form} change={change} />
        <label className="field">
          Reason (kept with each of them)
          <input
            value={form.reason}
            maxLength={500}
            placeholder="e.g. the warehouse is down"
            onChange={({ target }) => change({ reason: target.value })}
          />
        </label>
        {only !== undefined && only.size > FILTER_IDS_MAX && (
          <p className="tone-warn">Only the first {FILTER_IDS_MAX.toLocaleString("en")}: one call takes no more.</p>
        )}
        {preview.isError && (
          <p role="alert" className="problem wrap">
            {preview.error.message}
          </p>
        )}
        {!preview.isError && <Preview action={form.action} matched={matched} answer={body && preview.data} />}
        {body !== undefined && <p className="quiet wrap">{filterText(body.filter)}</p>}
        <DialogEnd
          action={bulk}
          submit={actionText(form.action, matched === undefined ? "…" : executionsText(matched))}
          submitting="Starting …"
          isRisky={form.action === "cancel"}
          isBlocked={matched === undefined || matched === 0 || preview.isError}
          onClose={() => dialog.current?.close()}
        />
      </form>
    </dialog>
  );
}

/** What an action is called where one is chosen. */
const VERBS: Readonly<Record<BulkAction, string>> = {
  cancel: "Cancel",
  pause: "Pause",
  resume: "Resume",
  rerun: "Run again",
};

/** `Cancel 3 executions`, `Run 1 execution again`: on the button and in the title. */
export function actionText(action: BulkAction, executions: string): string {
  return action === "rerun" ? `Run ${executions} again` : `${VERBS[action]} ${executions}`;
}

/** `1 execution`, `2,000 executions`. */
export function executionsText(count: number): string {
  return `${count.toLocaleString("en")} execution${count === 1 ? "" : "s"}`;
}

function usePreview(body: ReturnType<typeof bulkBody>) {
  // The preview does not depend on the reason.
  const asked = body && { ...body, options: { ...body.options, reason: undefined } };
  return useQuery({
    queryKey: ["bulk-preview", asked],
    enabled: asked !== undefined,
    placeholderData: keepPreviousData,
    retry: false,
    staleTime: 0,
    queryFn: ({ signal }) => {
      if (body === undefined) throw new Error("Choose an action first");
      return api("POST /api/executions/bulk", { body: { ...body, dry_run: true }, signal });
    },
  });
}

function useBulk(onClose: (isDone: boolean) => void) {
  const navigate = useNavigate();
  const key = useIdempotencyKey();
  return useMutation({
    mutationFn: (body: NonNullable<ReturnType<typeof bulkBody>>) =>
      api("POST /api/executions/bulk", { body, headers: key.of(body) }),
    onSuccess: ({ bulk_id: bulkId }) => {
      key.answered();
      void queries.invalidateQueries({ queryKey: ["executions"] });
      onClose(true);
      return bulkId === undefined ? undefined : navigate({ to: "/executions/bulk/$bulkId", params: { bulkId } });
    },
  });
}

function Choices({ form, change }: { form: BulkForm; change: (part: Partial<BulkForm>) => void }): ReactNode {
  const { action, cascade, isFromStart, isNewest } = form;
  return (
    <>
      <fieldset className="row bulk-actions">
        <legend className="unseen">What to do</legend>
        {(Object.keys(VERBS) as BulkAction[]).map((one) => (
          <label key={one} className="check">
            <input type="radio" name="action" checked={action === one} onChange={() => change({ action: one })} />
            {VERBS[one]}
          </label>
        ))}
      </fieldset>
      {action === "rerun" ? (
        <div className="stack tight">
          <Check isOn={isFromStart} onChange={(on) => change({ isFromStart: on })}>
            From the start: completed steps run again too
          </Check>
          <Check isOn={isNewest} onChange={(on) => change({ isNewest: on })}>
            With the newest version of the playbook
          </Check>
        </div>
      ) : (
        <Check isOn={cascade} onChange={(on) => change({ cascade: on })}>
          Also the executions they called
        </Check>
      )}
    </>
  );
}

function Check({
  isOn,
  onChange,
  children,
}: {
  isOn: boolean;
  onChange(on: boolean): void;
  children: ReactNode;
}): ReactNode {
  return (
    <label className="check">
      <input type="checkbox" checked={isOn} onChange={({ target }) => onChange(target.checked)} />
      {children}
    </label>
  );
}

/** What happens to them, in a sentence or two. */
const EFFECTS: Readonly<Record<BulkAction, string>> = {
  cancel: "This cannot be undone. Executions that start from now on are not affected.",
  pause: "Running steps finish; nothing new starts until they are resumed.",
  resume: "They continue, including everything that became due in the meantime.",
  rerun: "Each runs again as a new execution; the original is not changed.",
};

function Preview({
  action,
  matched,
  answer,
}: {
  action: BulkAction;
  matched: number | undefined;
  answer: BulkStartAnswer | undefined;
}): ReactNode {
  if (matched === undefined) return <p role="status">Counting …</p>;
  if (matched === 0) return <p role="status">{NOTHING[action]}</p>;
  const sample = answer?.sample ?? [];
  return (
    <>
      <p role="status">
        <strong>{executionsText(matched)}</strong>. {EFFECTS[action]}
      </p>
      <ul className="plan bulk-sample">
        {sample.map(({ execution_id: id, path, status, started_at: startedAt, plan }) => (
          <li key={id}>
            <span className="row">
              <Status of={status} short />
              <span className="wrap grow">{path}</span>
              <span className="quiet">
                <Ago at={startedAt} />
              </span>
            </span>
            {plan !== undefined && <span className="quiet wrap">{planText(plan)}</span>}
          </li>
        ))}
      </ul>
      {matched > sample.length && sample.length > 0 && <p className="quiet">The newest {sample.length} are shown.</p>}
    </>
  );
}

const NOTHING: Readonly<Record<BulkAction, string>> = {
  cancel: "None of them is still running: there is nothing to cancel.",
  pause: "None of them is running: there is nothing to pause.",
  resume: "None of them is paused: there is nothing to resume.",
  rerun: "None of them has ended: there is nothing to run again.",
};

type Sampled = NonNullable<BulkStartAnswer["sample"]>[number];

function planText(plan: NonNullable<Sampled["plan"]>): string {
  if ("refused" in plan) return `would be refused: ${plan.refused.message}`;
  const reused =
    plan.reused === 0
      ? ""
      : `; ${plan.reused} ${plan.reused === 1 ? "step keeps its result" : "steps keep their results"}`;
  return `runs ${plan.will_run.join(", ") || "nothing"}${reused}`;
}
