import type { ReactNode } from "react";
import { JsonView } from "../../parts/json/view.tsx";
import type { StartPreview } from "./use-start-preview.ts";

/** Beside a form of inputs: what a start with them would begin with, as the server works it out. */
export function PreviewCard({ preview }: { preview: StartPreview }): ReactNode {
  const { workload, problems, warnings, error, isOld } = preview;
  const wrong = Object.entries(problems);
  return (
    <section className="card start-preview" aria-label="Preview" data-old={isOld}>
      <header>
        <h2>Starts with</h2>
      </header>
      <div className="pad stack tight">
        {error !== null && <p className="problem wrap">{error.message}</p>}
        {error === null && wrong.length > 0 && (
          <div className="note tone-bad wrap">
            <p>Would not start:</p>
            <ul>
              {wrong.map(([name, message]) => (
                <li key={name}>
                  <code>{name}</code> {message}
                </li>
              ))}
            </ul>
          </div>
        )}
        {warnings.map((warning) => (
          <p key={warning} className="tone-warn wrap">
            {warning}
          </p>
        ))}
        {workload !== undefined ? (
          <JsonView label="Workload" value={workload} />
        ) : (
          error === null && <p className="quiet">Working it out …</p>
        )}
      </div>
    </section>
  );
}
