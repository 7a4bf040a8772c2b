import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { Problem } from "../../api/problem.ts";
import { catalogEntry } from "../../api/queries.ts";
import type { Resource } from "../../api/types.ts";
import { DiffView } from "../diff/view.tsx";

/** What registering a text would change, and the button for it. A new path has nothing to compare with. */
export function ReviewDialog({
  path,
  text,
  began,
  isBusy,
  problem,
  warnings,
  onRegister,
  onClose,
}: {
  path: string;
  text: string;
  /** The version that the text began as. */
  began: number | undefined;
  isBusy: boolean;
  problem: string | undefined;
  /** How many warnings the document has. */
  warnings: number;
  onRegister(strict: boolean): void;
  onClose(): void;
}): ReactNode {
  const [isStrict, setStrict] = useState(false);
  const isStopped = isStrict && warnings > 0;
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const newest = useQuery({ ...catalogEntry(path, "latest"), staleTime: 0 });
  const isSame = newest.data?.content === text;
  const version = newest.data === undefined ? 1 : newest.data.version + 1;
  return (
    <dialog ref={dialog} className="review" aria-labelledby="review-title" onClose={onClose}>
      <div className="stack">
        <h1 id="review-title" className="wrap">
          {isSame ? `Nothing changes in ${path}` : `Register ${path} as version ${version}`}
        </h1>
        <Comparison newest={newest} text={text} began={began} />
        {problem !== undefined && (
          <p role="alert" className="problem wrap">
            {problem}
          </p>
        )}
        {!isSame && (
          <label className="row">
            <input type="checkbox" checked={isStrict} onChange={(event) => setStrict(event.target.checked)} />
            <span>
              Strict: do not register a document with warnings
              {warnings > 0 && ` (it has ${warnings === 1 ? "one" : warnings})`}
            </span>
          </label>
        )}
        <div className="row">
          {!isSame && (
            <button
              type="button"
              className="main"
              disabled={isBusy || newest.isPending || isStopped}
              onClick={() => onRegister(isStrict)}
            >
              {isBusy ? "Registering …" : `Register version ${version}`}
            </button>
          )}
          <button type="button" onClick={() => dialog.current?.close()}>
            Back to the text
          </button>
        </div>
      </div>
    </dialog>
  );
}

/** What is registered now, beside the text. */
function Comparison({
  newest,
  text,
  began,
}: {
  newest: UseQueryResult<Resource>;
  text: string;
  began: number | undefined;
}): ReactNode {
  const isNew = newest.error instanceof Problem && newest.error.status === 404;
  return (
    <>
      {newest.isPending && <p className="quiet">Comparing with what is registered …</p>}
      {newest.isError && !isNew && (
        <p role="alert" className="problem wrap">
          What is registered cannot be read: {newest.error.message}
        </p>
      )}
      {isNew && <p>Nothing is registered under this path yet.</p>}
      {newest.data !== undefined && began !== undefined && newest.data.version > began && (
        <p role="alert" className="problem">
          Version {newest.data.version} was registered after you began with version {began}. Yours would replace what it
          changed.
        </p>
      )}
      {newest.data !== undefined && newest.data.content !== text && (
        <DiffView before={newest.data.content} after={text} label={`Changes from version ${newest.data.version}`} />
      )}
    </>
  );
}
