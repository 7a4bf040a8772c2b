import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { History } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { api } from "../../api/client.ts";
import { catalogEntry, queries } from "../../api/queries.ts";
import type { Resource } from "../../api/types.ts";
import { useAllowed } from "../../parts/allowed.ts";
import { AllowedButton } from "../../parts/allowed-button.tsx";
import { DialogEnd } from "../../parts/dialog-end.tsx";
import { ProblemPanel } from "../../parts/problem.tsx";
import { DiffView } from "../diff/view.tsx";

/** Makes an older version the newest again, by registering its text once more. */
export function RollBack({ old }: { old: Resource }): ReactNode {
  const [isOpen, setIsOpen] = useState(false);
  const may = useAllowed("modify", { path: old.path });
  return (
    <>
      <AllowedButton may={may} data-command={`Roll back to version ${old.version}`} onClick={() => setIsOpen(true)}>
        <History className="icon" aria-hidden="true" />
        Roll back to version {old.version} …
      </AllowedButton>
      {isOpen && <RollBackDialog old={old} onClose={() => setIsOpen(false)} />}
    </>
  );
}

function RollBackDialog({ old, onClose }: { old: Resource; onClose(): void }): ReactNode {
  const { path, version, content } = old;
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const newest = useQuery({ ...catalogEntry(path, "latest"), staleTime: 0 });
  const navigate = useNavigate();
  const rollBack = useMutation({
    mutationFn: () => api("POST /api/catalog/register", { body: { content } }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["catalog"] });
      await queries.invalidateQueries({ queryKey: ["triggers"] });
      await navigate({ to: "/entry/$", params: { _splat: path }, search: { tab: "versions" } });
    },
  });
  const next = (newest.data?.version ?? version) + 1;
  return (
    <dialog ref={dialog} className="review" aria-labelledby="roll-back-title" onClose={onClose}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          rollBack.mutate();
        }}
      >
        <h1 id="roll-back-title" className="wrap">
          Roll {path} back to version {version}?
        </h1>
        <p>
          Its text is registered again as version {next}: new runs take it, and its triggers are the active ones. What
          runs goes on with the version that it began with. Nothing is deleted.
        </p>
        {newest.isError && <ProblemPanel error={newest.error} />}
        {newest.data !== undefined && (
          <DiffView
            before={newest.data.content}
            after={content}
            label={`From version ${newest.data.version} to the text of version ${version}`}
          />
        )}
        <DialogEnd
          action={rollBack}
          submit={`Register version ${next}`}
          submitting="Registering …"
          isBlocked={newest.data === undefined}
          onClose={() => dialog.current?.close()}
        />
      </form>
    </dialog>
  );
}
