import { getRouteApi } from "@tanstack/react-router";
import { type ReactNode, useEffect, useId, useRef } from "react";
import type { Execution } from "../../api/types.ts";
import type { EventLog } from "./log.ts";
import { EVENT_TYPES } from "./text.ts";

const route = getRouteApi("/executions/$executionId");
/** Names that are proposed while one writes. */
const PROPOSED_MAX = 200;
/** The text is searched when the user has stopped typing for this long, milliseconds. */
const SETTLE_MS = 350;

/** What the address says of it. */
interface Narrowing {
  type?: string | undefined;
  step?: string | undefined;
  worker?: string | undefined;
  failed?: true | undefined;
  q?: string | undefined;
}

const NOTHING: Narrowing = { type: undefined, step: undefined, worker: undefined, failed: undefined, q: undefined };

/** What the log is narrowed to; the server looks for it, so it is looked for in all of the log. */
export function EventFilters({ execution, log }: { execution: Execution; log: EventLog }): ReactNode {
  const { type, step, worker, failed, q } = route.useSearch();
  const navigate = route.useNavigate();
  const narrow = (to: Narrowing) =>
    void navigate({ search: (before) => ({ ...before, ...to }), replace: true, resetScroll: false });
  const isFiltered = [type, step, worker, failed, q].some((value) => value !== undefined);
  return (
    <search className="row">
      <Writing label="Find" kind="search" value={q} isFilter onChange={(text) => narrow({ q: text })} />
      <label>
        Type
        <select
          value={type ?? ""}
          onChange={({ target }) => narrow({ type: target.value === "" ? undefined : target.value })}
        >
          <option value="">all</option>
          {type !== undefined && !EVENT_TYPES.includes(type) && <option value={type}>{type}</option>}
          {EVENT_TYPES.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <Writing
        label="Step"
        value={step}
        proposed={execution.steps.slice(0, PROPOSED_MAX).map(({ name }) => name)}
        onChange={(text) => narrow({ step: text })}
      />
      <Writing label="Worker" value={worker} onChange={(text) => narrow({ worker: text })} />
      <label>
        <input
          type="checkbox"
          checked={failed === true}
          onChange={({ target }) => narrow({ failed: target.checked ? true : undefined })}
        />
        Failures only
      </label>
      {isFiltered && (
        <button type="button" onClick={() => narrow(NOTHING)}>
          Show all
        </button>
      )}
      <span className="quiet" role="status">
        {log.isCounted() ? "" : "at least "}
        {log.size().toLocaleString("en")} {log.size() === 1 ? "event" : "events"}
        {!log.isCounted() && ", counting …"}
      </span>
    </search>
  );
}

/** A text that is applied when the user pauses. */
function Writing({
  label,
  kind = "text",
  value,
  proposed,
  isFilter = false,
  onChange,
}: {
  label: string;
  kind?: "text" | "search";
  value: string | undefined;
  proposed?: readonly string[];
  isFilter?: boolean;
  onChange(text: string | undefined): void;
}): ReactNode {
  const list = useId();
  const input = useRef<HTMLInputElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  // The address may change otherwise too: by "Show all", by going back.
  useEffect(() => {
    const element = input.current;
    if (element !== null && element !== document.activeElement) element.value = value ?? "";
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <label
      title={kind === "search" ? "In the type, the step, the task, the worker and the error of an event" : undefined}
    >
      {label}
      <input
        ref={input}
        type={kind}
        className={kind === "search" ? "find" : "short"}
        defaultValue={value ?? ""}
        maxLength={200}
        placeholder={kind === "search" ? "type, step, worker, error" : ""}
        {...(isFilter && { "data-filter": "" })}
        {...(proposed !== undefined && { list })}
        onChange={({ target }) => {
          clearTimeout(timer.current);
          timer.current = setTimeout(() => onChange(target.value === "" ? undefined : target.value), SETTLE_MS);
        }}
      />
      {proposed !== undefined && (
        <datalist id={list}>
          {proposed.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      )}
    </label>
  );
}
