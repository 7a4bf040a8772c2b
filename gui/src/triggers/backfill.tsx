import { keepPreviousData, useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { type Answer, api } from "../api/client.ts";
import { useIdempotencyKey } from "../api/idempotency.ts";
import type { Trigger } from "../api/triggers.ts";
import { useAllowed } from "../parts/allowed.ts";
import { AllowedButton } from "../parts/allowed-button.tsx";
import { DialogEnd } from "../parts/dialog-end.tsx";
import { momentText } from "../parts/time.ts";

/** Gaps and times that are named one by one. */
const NAMED_MAX = 8;
/** The range that is offered first. */
const WEEK_MS = 7 * 86_400_000;

/** Makes up for times of a schedule that have passed. */
export function Backfill({ trigger }: { trigger: Trigger }): ReactNode {
  const may = useAllowed("execute", { path: trigger.path });
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <AllowedButton may={may} data-command={`Backfill ${trigger.name}`} onClick={() => setIsOpen(true)}>
        Backfill …
      </AllowedButton>
      {isOpen && <BackfillDialog trigger={trigger} onClose={() => setIsOpen(false)} />}
    </>
  );
}

interface Range {
  from: string;
  to: string;
  maxActive: string;
  order: "oldest" | "newest";
  onlyMissing: boolean;
}

function BackfillDialog({ trigger, onClose }: { trigger: Trigger; onClose(): void }): ReactNode {
  const { trigger_id: id, name } = trigger;
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const [range, setRange] = useState<Range>(firstRange);
  const navigate = useNavigate();
  const key = useIdempotencyKey();
  const params = { trigger_id: id };
  const preview = useQuery({
    queryKey: ["triggers", "backfill", id, range],
    retry: false,
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) =>
      api("POST /api/triggers/:trigger_id/backfill", { params, body: { ...bodyOf(range), dry_run: true }, signal }),
  });
  const begin = useMutation({
    mutationFn: () => {
      const body = bodyOf(range);
      return api("POST /api/triggers/:trigger_id/backfill", { params, body, headers: key.of([id, body]) });
    },
    onSuccess: ({ bulk_id: bulkId }) => {
      key.answered();
      if (bulkId !== undefined) void navigate({ to: "/executions/bulk/$bulkId", params: { bulkId } });
    },
  });
  const count = preview.data?.matched ?? 0;
  return (
    <dialog ref={dialog} className="review" aria-labelledby="backfill-title" onClose={onClose}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          begin.mutate();
        }}
      >
        <h1 id="backfill-title">Make up for times of {name}</h1>
        <p>
          Each time of the schedule from the first moment up to, but not including, the second starts one execution.
        </p>
        <RangeFields range={range} onRange={setRange} />
        {preview.isError ? (
          <p role="alert" className="problem wrap">
            {preview.error.message}
          </p>
        ) : (
          <Preview preview={preview.data} />
        )}
        <DialogEnd
          action={begin}
          submit={count === 1 ? "Start 1 execution" : `Start ${count.toLocaleString("en")} executions`}
          submitting="Starting …"
          isBlocked={count === 0 || preview.isError || preview.isPlaceholderData}
          onClose={() => dialog.current?.close()}
        />
      </form>
    </dialog>
  );
}

function RangeFields({ range, onRange }: { range: Range; onRange(range: Range): void }): ReactNode {
  const change = (part: Partial<Range>) => onRange({ ...range, ...part });
  return (
    <div className="row">
      <label>
        From
        <input
          type="datetime-local"
          required
          value={range.from}
          onChange={(event) => change({ from: event.target.value })}
        />
      </label>
      <label>
        to
        <input
          type="datetime-local"
          required
          value={range.to}
          onChange={(event) => change({ to: event.target.value })}
        />
      </label>
      <label>
        At a time
        <input
          type="number"
          min={1}
          max={1_000}
          value={range.maxActive}
          onChange={(event) => change({ maxActive: event.target.value })}
        />
      </label>
      <label>
        First
        <select
          value={range.order}
          onChange={(event) => change({ order: event.target.value === "newest" ? "newest" : "oldest" })}
        >
          <option value="oldest">the oldest</option>
          <option value="newest">the newest</option>
        </select>
      </label>
      <label>
        <input
          type="checkbox"
          checked={range.onlyMissing}
          onChange={(event) => change({ onlyMissing: event.target.checked })}
        />
        Only times for which nothing was started
      </label>
    </div>
  );
}

/** How many it would be, where gaps are, and the first of them. */
function Preview({ preview }: { preview: Answer<"POST /api/triggers/:trigger_id/backfill"> | undefined }): ReactNode {
  if (preview === undefined) return <p className="quiet">Looking …</p>;
  const { matched, missing = 0, gaps = [], sample = [] } = preview;
  return (
    <section className="panel stack tight" aria-label="Preview">
      <h2>
        {matched === 1 ? "1 time" : `${matched.toLocaleString("en")} times`}; for {missing.toLocaleString("en")}
        {matched === missing ? "" : " of the range"} nothing was started yet
      </h2>
      {gaps.length > 0 && (
        <ul className="plain-list">
          {gaps.slice(0, NAMED_MAX).map(({ from, to, count }) => (
            <li key={from}>
              {timeText(from)}
              {count > 1 && ` to ${timeText(to)}, ${count.toLocaleString("en")} times`}
            </li>
          ))}
          {gaps.length > NAMED_MAX && <li>and more gaps</li>}
        </ul>
      )}
      {gaps.length === 0 &&
        sample.slice(0, NAMED_MAX).map(({ due_at: due, status, execution_id: executionId }) => (
          <p key={due} className="number">
            {timeText(due)} · {status}{" "}
            {executionId !== undefined && (
              <Link to="/executions/$executionId" params={{ executionId }} className="mono">
                {executionId}
              </Link>
            )}
          </p>
        ))}
    </section>
  );
}

function firstRange(): Range {
  const now = Date.now();
  return { from: fieldText(now - WEEK_MS), to: fieldText(now), maxActive: "4", order: "oldest", onlyMissing: true };
}

function bodyOf({ from, to, maxActive, order, onlyMissing }: Range) {
  // A field has no zone: the reader's own is meant. What is empty is refused with words of the server.
  const momentOf = (text: string) => (Number.isNaN(Date.parse(text)) ? text : new Date(text).toISOString());
  return {
    from: momentOf(from),
    to: momentOf(to),
    order,
    only_missing: onlyMissing,
    ...(/^\d+$/.test(maxActive) && { max_active: Number(maxActive) }),
  };
}

/** A moment as a field of the browser has it, in the reader's own zone. */
function fieldText(at: number): string {
  return momentText(at).slice(0, 16).replace(" ", "T");
}

function timeText(at: string): string {
  return momentText(Date.parse(at)).slice(0, 16);
}
