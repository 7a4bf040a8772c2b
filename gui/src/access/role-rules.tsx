import { useMutation } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useRef } from "react";
import { api } from "../api/client.ts";
import type { Role } from "../api/types.ts";
import type { Allowed } from "../parts/allowed.ts";
import { AllowedButton } from "../parts/allowed-button.tsx";
import { Confirm } from "./confirm.tsx";
import { accessChanged } from "./queries.ts";
import { actionsOf, ruleText } from "./rule-text.ts";

/** What a role allows with which playbooks, row by row. */
export function RoleRules({ role, may }: { role: Role; may: Allowed }): ReactNode {
  const remove = (permissionId: string) =>
    api("DELETE /api/auth/roles/:role/playbooks/:permission_id", {
      params: { role: role.name, permission_id: permissionId },
    });
  return (
    <section className="panel stack">
      <h2>Playbooks</h2>
      {role.playbooks.length === 0 && <p className="quiet">None: it grants no access to playbooks.</p>}
      {role.playbooks.length > 0 && (
        <div className="scroll">
          <table>
            <thead>
              <tr>
                <th>Paths</th>
                <th>But not</th>
                <th>May</th>
                <th>
                  <span className="unseen">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {role.playbooks.map((rule) => (
                <tr key={rule.permission_id}>
                  <td className="mono wrap">{rule.playbook_path ?? rule.allow_pattern}</td>
                  <td className="mono wrap">{rule.deny_pattern}</td>
                  <td>{actionsOf(rule).join(", ")}</td>
                  <td className="actions">
                    <Confirm
                      label="Remove"
                      name={`Remove ${ruleText(rule)}`}
                      title={`Remove this from ${role.name}?`}
                      action="Remove"
                      may={may}
                      run={() => remove(rule.permission_id)}
                    >
                      {ruleText(rule)}
                    </Confirm>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <AddRule role={role} may={may} />
    </section>
  );
}

function AddRule({ role, may }: { role: Role; may: Allowed }): ReactNode {
  const form = useRef<HTMLFormElement>(null);
  const add = useMutation({
    mutationFn: (body: Parameters<typeof bodyOf>[0]) =>
      api("POST /api/auth/roles/:role/playbooks", { params: { role: role.name }, body: bodyOf(body) }),
    onSuccess: async () => {
      form.current?.reset();
      await accessChanged();
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    add.mutate(new FormData(event.currentTarget));
  };
  return (
    <details>
      <summary>Allow more playbooks</summary>
      <form ref={form} className="stack rule" onSubmit={submit}>
        <p className="quiet">
          <code>*</code> stands for anything within a segment, <code>**</code> for anything; one pattern in each line.
          Paths under “but not” are excluded from this row only.
        </p>
        <label className="field">
          Paths
          <textarea name="allow" rows={2} required maxLength={1024} placeholder="etl/**" className="mono" />
        </label>
        <label className="field">
          But not
          <textarea name="deny" rows={2} maxLength={1024} placeholder="etl/private/**" className="mono" />
        </label>
        <fieldset className="row">
          <legend>May</legend>
          <label>
            <input type="checkbox" name="view" defaultChecked /> see
          </label>
          <label>
            <input type="checkbox" name="execute" /> run and cancel
          </label>
          <label>
            <input type="checkbox" name="modify" /> register and delete
          </label>
        </fieldset>
        {add.isError && (
          <p role="alert" className="panel tone-bad wrap">
            {add.error.message}
          </p>
        )}
        <div>
          <AllowedButton may={may} type="submit" disabled={add.isPending}>
            Allow
          </AllowedButton>
        </div>
      </form>
    </details>
  );
}

function bodyOf(form: FormData) {
  const lines = (name: string) =>
    String(form.get(name) ?? "")
      .split(/\r?\n/)
      .map((line) => line.trim())
      .filter((line) => line !== "")
      .join("\n");
  const deny = lines("deny");
  return {
    allow_pattern: lines("allow"),
    ...(deny !== "" && { deny_pattern: deny }),
    can_view: form.has("view"),
    can_execute: form.has("execute"),
    can_modify: form.has("modify"),
  };
}
