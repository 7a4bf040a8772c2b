import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { api } from "../api/client.ts";
import { Problem } from "../api/problem.ts";
import { queries } from "../api/queries.ts";
import type { Credential } from "../api/types.ts";
import { ConfirmDialog } from "../parts/confirm-dialog.tsx";
import { JsonView } from "../parts/json/view.tsx";
import { Ago } from "../parts/now.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { CredentialForm } from "./form.tsx";
import { CredentialHistory } from "./history.tsx";
import { credentialRecord } from "./queries.ts";
import { CredentialUses, UsesInShort } from "./uses.tsx";

/** One credential: what it is, what names it, what was done with it. */
export function CredentialDetail({ name, isReplaced }: { name: string; isReplaced: boolean }): ReactNode {
  const record = useQuery(credentialRecord(name));
  if (record.isPending) return <p className="quiet">Loading …</p>;
  if (record.isError) {
    const isAbsent = record.error instanceof Problem && record.error.status === 404;
    return (
      <div className="stack">
        <ProblemPanel error={record.error} again={() => void record.refetch()} />
        {isAbsent && <CredentialUses name={name} />}
      </div>
    );
  }
  if (isReplaced) return <CredentialForm replaced={record.data} />;
  return (
    <div className="stack">
      <Head record={record.data} />
      <CredentialUses name={name} />
      <CredentialHistory name={name} />
    </div>
  );
}

function Head({ record }: { record: Credential }): ReactNode {
  const { name, type, description, playbooks = [], tags, schema, meta } = record;
  return (
    <>
      <div className="row spread">
        <h1 className="wrap">{name}</h1>
        <div className="row">
          <Link to="/credentials" className="button">
            All credentials
          </Link>
          <Link to="/credentials" search={{ name, form: "replace" }} className="button">
            Replace …
          </Link>
          <Remove name={name} />
        </div>
      </div>
      <section className="panel stack">
        <dl className="facts">
          <dt>Type</dt>
          <dd>{type}</dd>
          <dt>Description</dt>
          <dd className="wrap">{description ?? <span className="quiet">none</span>}</dd>
          <dt>Playbooks</dt>
          <dd className="wrap">
            {playbooks.length > 0 ? (
              playbooks.join(", ")
            ) : (
              <strong>
                No playbook may use it yet. Replace it with paths, or: flow credentials paths {name} 'PATH/**'
              </strong>
            )}
          </dd>
          <dt>Tags</dt>
          <dd>{tags.length === 0 ? <span className="quiet">none</span> : tags.join(", ")}</dd>
          <dt>Made</dt>
          <dd>
            <Ago at={record.created_at} />
          </dd>
          <dt>Changed</dt>
          <dd>
            <Ago at={record.updated_at} />
          </dd>
          <dt>Data</dt>
          <dd className="quiet">kept encrypted, given to workers alone</dd>
        </dl>
        {meta !== null && <JsonView label="Meta" value={meta} />}
        {schema !== null && <JsonView label="Schema" value={schema} />}
      </section>
    </>
  );
}

function Remove({ name }: { name: string }): ReactNode {
  const [isConfirming, setIsConfirming] = useState(false);
  const navigate = useNavigate();
  const remove = useMutation({
    mutationFn: () => api("DELETE /api/credentials/:identifier", { params: { identifier: name } }),
    onSuccess: async () => {
      await navigate({ to: "/credentials", search: {} });
      await queries.invalidateQueries({ queryKey: ["credentials"] });
    },
  });
  return (
    <>
      <button type="button" className="risky" onClick={() => setIsConfirming(true)}>
        Delete …
      </button>
      {isConfirming && (
        <ConfirmDialog
          title={`Delete the credential '${name}'?`}
          action={`Delete ${name}`}
          isRisky
          isBusy={remove.isPending}
          onConfirm={() => remove.mutate()}
          onClose={() => setIsConfirming(false)}
        >
          <UsesInShort name={name} />
          <p>This cannot be undone. Tasks that are using it now keep it until they end.</p>
          {remove.isError && (
            <p role="alert" className="problem wrap">
              {remove.error.message}
            </p>
          )}
        </ConfirmDialog>
      )}
    </>
  );
}
