import { useMutation } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useState } from "react";
import { PLAYBOOKS_KEY } from "../../../src/schema/rules/credential-playbooks.ts";
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
  const [playbooks, setPlaybooks] = useState(listedIn(replaced).join(", "));
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
      save.start({ name: name.trim(), type, description, playbooks, tags, data });
    } catch (error) {
      setProblems([error instanceof Error ? error.message : String(error)]);
    }
  };
  return (
    <form className="stack credential-form" onSubmit={submit} noValidate autoComplete="off">
      <h1 className="wrap">{replaced === undefined ? "New credential" : `Replace ${replaced.name}`}</h1>
      <section className="panel stack">
        {replaced !== undefined && (
          <p>
            What it holds is not shown. All of it is replaced by what you write here; its schema and the rest of its
            meta stay.
          </p>
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
        <Line
          label="Playbooks"
          value={playbooks}
          onText={setPlaybooks}
          hint="which may use it: paths such as etl/**, separated by commas; ** for all. If empty, none may (in a service that is open: all)"
        />
        <Line label="Tags" value={tags} onText={setTags} hint="separated by commas" />
      </section>
      <DataFields fields={fields} onFields={setFields} json={json} onJson={setJson} />
      {(problems.length > 0 || save.error !== undefined) && (
        <Refusal problems={problems.length > 0 ? problems : messagesOf(save.error)} />
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

function Refusal({ problems }: { problems: readonly string[] }): ReactNode {
  return (
    <div role="alert" className="panel tone-bad">
      <h2>The credential was not saved</h2>
      <ul>
        {problems.map((problem) => (
          <li key={problem} className="wrap">
            {problem}
          </li>
        ))}
      </ul>
    </div>
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
  playbooks: string;
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

async function saved(written: Written, replaced: Credential | undefined) {
  const { name, type, description, data } = written;
  const content = {
    type,
    data: data as never,
    description: description.trim() === "" ? null : description.trim(),
    tags: wordsOf(written.tags),
    meta: metaOf(replaced, wordsOf(written.playbooks)) as never,
    ...(replaced !== undefined && { schema: replaced.schema as never }),
  };
  if (replaced === undefined) await refuseKnown(name);
  return await (replaced === undefined
    ? api("POST /api/credentials", { body: { name, ...content } })
    : api("PUT /api/credentials/:identifier", { params: { identifier: name }, body: content }));
}

function wordsOf(text: string): string[] {
  return text.split(",").flatMap((word) => (word.trim() === "" ? [] : [word.trim()]));
}

/** The paths that its meta lists; those that only the service's default gives it are not its own. */
function listedIn(replaced: Credential | undefined): string[] {
  return Array.isArray(replaced?.meta?.[PLAYBOOKS_KEY]) ? (replaced.playbooks ?? []) : [];
}

/** The other keys stay as they are. Without a list from before, an empty field leaves it out, and the service's default holds. */
function metaOf(replaced: Credential | undefined, playbooks: readonly string[]): JsonObject | null {
  const before = (replaced?.meta ?? {}) as JsonObject;
  const isListed = playbooks.length > 0 || Array.isArray(before[PLAYBOOKS_KEY]);
  const meta: JsonObject = { ...before, ...(isListed && { [PLAYBOOKS_KEY]: [...playbooks] }) };
  return Object.keys(meta).length === 0 ? null : meta;
}

/** The server would replace one with the same name, which is not wanted when creating one. */
async function refuseKnown(name: string): Promise<void> {
  try {
    await api("GET /api/credentials/:identifier", { params: { identifier: name } });
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return;
    throw error;
  }
  throw new Error(`A credential '${name}' already exists. Choose another name, or replace it.`);
}

function messagesOf(error: Error | undefined): string[] {
  const detail = error instanceof Problem ? (error.detail as { errors?: unknown } | undefined) : undefined;
  const messages = Array.isArray(detail?.errors) ? detail.errors.filter((one) => typeof one === "string") : [];
  return messages.length > 0 ? messages : [error?.message ?? ""];
}
