import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import type { RenderedTask } from "../../api/types.ts";
import { JsonView } from "../../parts/json/view.tsx";
import { type RenderedRequest, renderedInputs } from "./rendered.ts";
import { type RenderedRow, rowsOf } from "./rendered-rows.ts";

/** Rows of a task that are shown before the user asks for more. */
const SHOWN = 60;

/** The inputs of each task: as the playbook has them, and rendered. */
export function RenderedView({ request }: { request: RenderedRequest }): ReactNode {
  const [isOpen, setIsOpen] = useState(false);
  const answer = useQuery({ ...renderedInputs(request), enabled: isOpen });
  return (
    <details className="rendered" open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>Inputs: as written and as rendered</summary>
      {isOpen && answer.isPending && <p className="quiet">Rendering …</p>}
      {answer.isError && (
        <p role="alert" className="wrap">
          {answer.error.message}
        </p>
      )}
      {answer.data?.tasks.map((task) => (
        <TaskInputs key={task.task} task={task} />
      ))}
    </details>
  );
}

function TaskInputs({ task }: { task: RenderedTask }): ReactNode {
  const [shown, setShown] = useState(SHOWN);
  const rows = rowsOf(task);
  return (
    <section aria-label={`Inputs of ${task.task}`}>
      <h3>
        {task.task} <span className="quiet">{task.kind}</span>
      </h3>
      <div className="scroll">
        <table className="inputs">
          <thead>
            <tr>
              <th>Input</th>
              <th>As written</th>
              <th>As rendered</th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, shown).map((row) => (
              <InputRow key={row.path} row={row} />
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > shown && (
        <button type="button" onClick={() => setShown(shown + 500)}>
          {rows.length - shown} inputs more
        </button>
      )}
    </section>
  );
}

function InputRow({ row }: { row: RenderedRow }): ReactNode {
  const isTree = typeof row.rendered === "object" && row.rendered !== null;
  return (
    <tr className={row.isChanged ? "changed" : undefined}>
      <th scope="row">{row.path}</th>
      <td>
        <pre>{textOf(row.written)}</pre>
      </td>
      <td>
        {row.note !== undefined && <p className={row.isFault ? "tone-bad note" : "quiet"}>{row.note}</p>}
        {isTree ? (
          <JsonView label={row.path} value={row.rendered} />
        ) : (
          row.rendered !== undefined && <pre>{textOf(row.rendered)}</pre>
        )}
      </td>
    </tr>
  );
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value, null, 1) ?? "–");
}
