import { type ReactNode, useRef, useState } from "react";
import { answerOf, api } from "../api/client.ts";
import type { ExecutionItem } from "../api/types.ts";
import { queries } from "../app/queries.ts";

/** Calls under way at once. */
const AT_ONCE = 4;

/** Cancels what is marked, after saying how many that are. */
export function CancelMany({
  rows,
  marked,
  onDone,
}: {
  rows: readonly ExecutionItem[];
  marked: ReadonlySet<string>;
  onDone(): void;
}): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const [state, setState] = useState<{ done: number; refused: string[] } | undefined>();
  const paths = new Set(rows.filter(({ execution_id }) => marked.has(execution_id)).map(({ path }) => path));
  const run = async () => {
    const left = [...marked];
    const refused: string[] = [];
    let done = 0;
    setState({ done, refused });
    const one = async () => {
      for (let id = left.pop(); id !== undefined; id = left.pop()) {
        const call = api.POST("/api/executions/{execution_id}/cancel", {
          params: { path: { execution_id: id } },
          body: { reason: "cancelled in the browser, together with others" },
        });
        try {
          await answerOf(call);
        } catch (error) {
          refused.push(`${id}: ${error instanceof Error ? error.message : String(error)}`);
        }
        done += 1;
        setState({ done, refused });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, one));
    void queries.invalidateQueries({ queryKey: ["executions"] });
    if (refused.length > 0) return;
    dialog.current?.close();
    onDone();
  };
  if (marked.size === 0) return null;
  return (
    <>
      <button type="button" className="risky" onClick={() => dialog.current?.showModal()}>
        Cancel {marked.size} …
      </button>
      <dialog ref={dialog} aria-labelledby="cancel-title" onClose={() => setState(undefined)}>
        <div className="stack">
          <h1 id="cancel-title">
            Cancel {marked.size} execution{marked.size === 1 ? "" : "s"}?
          </h1>
          <p className="wrap">
            Of {[...paths].slice(0, 5).join(", ")}
            {paths.size > 5 && ` and ${paths.size - 5} more playbooks`}. What they have called is cancelled too. This
            cannot be taken back.
          </p>
          {state !== undefined && (
            <p role="status">
              {state.done} of {marked.size} asked{state.refused.length > 0 && `, ${state.refused.length} refused:`}
            </p>
          )}
          {state?.refused.slice(0, 10).map((text) => (
            <p key={text} className="wrap tone-bad">
              {text}
            </p>
          ))}
          <div className="row">
            <button type="button" className="risky" disabled={state !== undefined} onClick={() => void run()}>
              Cancel {marked.size}
            </button>
            <button type="button" onClick={() => dialog.current?.close()}>
              Close
            </button>
          </div>
        </div>
      </dialog>
    </>
  );
}
