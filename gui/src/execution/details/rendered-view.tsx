import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import type { RenderedTask } from "../../api/types.ts";
import { JsonView } from "../../parts/json/view.tsx";
import { type RenderedRequest, renderedInputs } from "./rendered.ts";
import { type RenderedRow, rowsOf } from "./rendered-rows.ts";

/** Rows of a task that are shown before the user asks for more. */
const SHOWN = 60;

/** The inputs of each task: as they were sent, or as the playbook has them. */
export function RenderedView({ request }: { request: RenderedRequest }): ReactNode {
  const [isWritten, setIsWritten] = useState(false);
  const answer = useQuery(renderedInputs(request));
  const tasks = answer.data?.tasks.filter((task) => rowsOf(task).some(({ written }) => !isEmpty(written))) ?? [];
  if (answer.data !== undefined && tasks.length === 0) return null;
  return (
    <section className="part" aria-label="Input">
      <div className="part-head">
        <h3>Input</h3>
        <fieldset className="segments" aria-label="How inputs are shown">
          <button type="button" aria-pressed={!isWritten} onClick={() => setIsWritten(false)}>
            as sent
          </button>
          <button type="button" aria-pressed={isWritten} onClick={() => setIsWritten(true)}>
            as written
          </button>
        </fieldset>
      </div>
      {answer.isPending && <p className="quiet">Rendering …</p>}
      {answer.isError && (
        <p role="alert" className="wrap">
          {answer.error.message}
        </p>
      )}
      {tasks.map((task) => (
        <TaskInputs key={task.task} task={task} isWritten={isWritten} hasName={tasks.length > 1} />
      ))}
    </section>
  );
}

function TaskInputs({
  task,
  isWritten,
  hasName,
}: {
  task: RenderedTask;
  isWritten: boolean;
  hasName: boolean;
}): ReactNode {
  const [shown, setShown] = useState(SHOWN);
  const rows = rowsOf(task);
  return (
    <div className="stack tight">
      {hasName && (
        <p className="quiet">
          {task.task} <code>{task.kind}</code>
        </p>
      )}
      <dl className="inputs" aria-label={`Inputs of ${task.task}`}>
        {rows.slice(0, shown).map((row) => (
          <InputRow key={row.path} row={row} isWritten={isWritten} />
        ))}
      </dl>
      {rows.length > shown && (
        <button type="button" onClick={() => setShown(shown + 500)}>
          {rows.length - shown} inputs more
        </button>
      )}
    </div>
  );
}

function InputRow({ row, isWritten }: { row: RenderedRow; isWritten: boolean }): ReactNode {
  const value = isWritten ? row.written : row.rendered;
  const isTree = typeof value === "object" && value !== null && !isWritten;
  return (
    <div className="input" data-input={row.path}>
      <dt>{row.path}</dt>
      <dd>
        {!isWritten && row.note !== undefined && <p className={row.isFault ? "tone-bad note" : "quiet"}>{row.note}</p>}
        {isTree ? <JsonView label={row.path} value={value} /> : value !== undefined && <pre>{textOf(value)}</pre>}
      </dd>
    </div>
  );
}

function isEmpty(value: unknown): boolean {
  return value === null || value === undefined || (typeof value === "object" && Object.keys(value).length === 0);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value, null, 1) ?? "–");
}
