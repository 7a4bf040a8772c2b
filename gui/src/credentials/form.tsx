import { useMutation } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useState } from "react";
import { CREDENTIAL_TYPES, type CredentialType } from "../../../src/schema/rules/credential-types.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { api } from "../api/client.ts";
import { Problem } from "../api/problem.ts";
import { queries } from "../api/queries.ts";
import type { Credential } from "../api/types.ts";
import { type DataField, dataOf, dataOfJson, problemsOf, startFields } from "./data-fields.ts";
import { DataFields } from "./data-fields-view.tsx";

/**
 * Creates or replaces a credential. The form sends its content only to the server: it stays in memory, never in a store of the
 * browser, and is gone with the form.
 */
export function CredentialForm({ replaced }: { replaced?: Credential }): ReactNode {
  const [name, setName] = useState(replaced?.name ?? "");
  const [type, setType] = useState<CredentialType>(
    () => CREDENTIAL_TYPES.find((one) => one === replaced?.type) ?? "sqldb",
  );
  const [description, setDescription] = useState(replaced?.description ?? "");
  const [tags, setTags] = useState(replaced?.tags.join(", ") ?? "");
  const [fields, setFields] = useState<readonly DataField[]>(() => startFields(type, []));
  const [json, setJson] = useState<string>();
  const [problems, setProblems] = useState<readonly string[]>([]);
  const save = useSave(replaced);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (save.isPending) return;
    try {
      const data = json === undefined ? dataOf(fields) : dataOfJson(json);
      const found = [...(name.trim() === "" ? ["The name is missing"] : []), ...problemsOf(type, data)];
      setProblems(found);
      if (found.length > 0) return;
      save.start({ name: name.trim(), type, description, tags, data });
    } catch (error) {
      setProblems([error instanceof Error ? error.message : String(error)]);
    }
  };
  return (
    <form className="stack credential-form" onSubmit={submit} noValidate autoComplete="off">
      <h1 className="wrap">{replaced === undefined ? "New credential" : `Replace ${replaced.name}`}</h1>
      <section className="panel stack">
        {replaced !== undefined && (
          <p>What it holds is not shown. All of it is replaced by what you write here; its schema and meta stay.</p>
        )}
        {replaced === undefined && (
          <Line label="Name" value={name} onText={setName} hint="Tasks name it in their auth" isRequired />
        )}
        <TypeChoice
          type={type}
          onType={(next) => {
            setType(next);
            setFields(startFields(next, fields));
          }}
        />
        <Line label="Description" value={description} onText={setDescription} />
        <Line label="Tags" value={tags} onText={setTags} hint="separated by commas" />
      </section>
      <DataFields fields={fields} onFields={setFields} json={json} onJson={setJson} />
      {(problems.length > 0 || save.error !== undefined) && (
        <div role="alert" className="panel tone-bad">
          <h2>It was not kept</h2>
          <ul>
            {(problems.length > 0 ? problems : messagesOf(save.error)).map((problem) => (
              <li key={problem} className="wrap">
                {problem}
              </li>
            ))}
          </ul>
        </div>
      )}
      <div className="row">
        <button type="submit" className="main" disabled={save.isPending}>
          {save.isPending ? "Keeping …" : replaced === undefined ? "Make it" : "Replace it"}
        </button>
        <Link to="/credentials" search={replaced === undefined ? {} : { name: replaced.name }} className="button">
          Cancel
        </Link>
      </div>
    </form>
  );
}

function TypeChoice({ type, onType }: { type: CredentialType; onType(type: CredentialType): void }): ReactNode {
  return (
    <div className="field">
      <label htmlFor="credential-type">Type</label>
      <select
        id="credential-type"
        value={type}
        onChange={({ target }) => onType(CREDENTIAL_TYPES.find((one) => one === target.value) ?? "custom")}
      >
        {CREDENTIAL_TYPES.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </div>
  );
}

function Line({
  label,
  value,
  onText,
  hint,
  isRequired = false,
}: {
  label: string;
  value: string;
  onText(text: string): void;
  hint?: string;
  isRequired?: boolean;
}): ReactNode {
  const id = `credential-${label.toLowerCase()}`;
  return (
    <div className="field">
      <label htmlFor={id}>
        {label} {hint !== undefined && <span className="quiet">{hint}</span>}
      </label>
      <input id={id} value={value} aria-required={isRequired} onChange={(event) => onText(event.target.value)} />
    </div>
  );
}

interface Written {
  name: string;
  type: CredentialType;
  description: string;
  tags: string;
  data: JsonObject;
}

function useSave(replaced: Credential | undefined) {
  const navigate = useNavigate();
  const save = useMutation({
    // Nothing of a secret is to stay in the cache when it was sent.
    gcTime: 0,
    mutationFn: (written: Written) => saved(written, replaced),
    onSuccess: async ({ name }) => {
      save.reset();
      await queries.invalidateQueries({ queryKey: ["credentials"] });
      await navigate({ to: "/credentials", search: { name } });
    },
  });
  return { start: save.mutate, isPending: save.isPending, error: save.error ?? undefined };
}

async function saved({ name, type, description, tags, data }: Written, replaced: Credential | undefined) {
  const words = tags.split(",").map((tag) => tag.trim());
  const content = {
    type,
    data: data as never,
    description: description.trim() === "" ? null : description.trim(),
    tags: words.filter((tag) => tag !== ""),
    ...(replaced !== undefined && { schema: replaced.schema as never, meta: replaced.meta as never }),
  };
  if (replaced === undefined) await refuseKnown(name);
  return await (replaced === undefined
    ? api("POST /api/credentials", { body: { name, ...content } })
    : api("PUT /api/credentials/:identifier", { params: { identifier: name }, body: content }));
}

/** The server would replace one with the same name, which is not wanted when creating one. */
async function refuseKnown(name: string): Promise<void> {
  try {
    await api("GET /api/credentials/:identifier", { params: { identifier: name } });
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return;
    throw error;
  }
  throw new Error(`There is a credential '${name}' already. Take another name, or replace that one.`);
}

function messagesOf(error: Error | undefined): string[] {
  const detail = error instanceof Problem ? (error.detail as { errors?: unknown } | undefined) : undefined;
  const messages = Array.isArray(detail?.errors) ? detail.errors.filter((one) => typeof one === "string") : [];
  return messages.length > 0 ? messages : [error?.message ?? ""];
}
