import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useRef } from "react";
import { api } from "../api/client.ts";
import type { Role } from "../api/types.ts";
import { useAllowed } from "../parts/allowed.ts";
import { AllowedButton } from "../parts/allowed-button.tsx";
import { DialogEnd } from "../parts/dialog-end.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { accessChanged, roleList } from "./queries.ts";
import { ruleText } from "./rule-text.ts";

/** What each role gives: permissions, and what with which playbooks. */
export function Roles(): ReactNode {
  const pages = useInfiniteQuery(roleList());
  const roles = pages.data?.pages.flatMap((page) => page.roles) ?? [];
  return (
    <div className="stack">
      <div className="row spread">
        <p className="quiet">Users may do what any of their active roles allows, and nothing else.</p>
        <AddRole />
      </div>
      {pages.isError && <ProblemPanel error={pages.error} again={() => void pages.refetch()} />}
      {pages.isPending && <p className="quiet">Loading …</p>}
      {roles.length > 0 && (
        <div className="panel scroll">
          <table>
            <thead>
              <tr>
                <th>Role</th>
                <th>Playbooks</th>
                <th className="wide">Beside them</th>
              </tr>
            </thead>
            <tbody>
              {roles.map((role) => (
                <Row key={role.name} role={role} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {pages.hasNextPage && (
        <button type="button" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          More
        </button>
      )}
    </div>
  );
}

/** Rules of a role that stand in the list; its page has all of them. */
const RULES_SHOWN = 4;

function Row({ role }: { role: Role }): ReactNode {
  return (
    <tr>
      <td>
        <Link to="/access" search={{ tab: "roles", role: role.name }}>
          {role.name}
        </Link>
        {!role.is_active && <span className="quiet"> (inactive)</span>}
        {role.description !== null && <div className="quiet wrap">{role.description}</div>}
      </td>
      <td>
        {role.playbooks.slice(0, RULES_SHOWN).map((rule) => (
          <div key={rule.permission_id} className="wrap">
            {ruleText(rule)}
          </div>
        ))}
        {role.playbooks.length > RULES_SHOWN && (
          <div className="quiet">and {role.playbooks.length - RULES_SHOWN} more</div>
        )}
        {role.playbooks.length === 0 && <span className="quiet">none</span>}
      </td>
      <td className="wide mono wrap">{role.permissions.join(", ")}</td>
    </tr>
  );
}

function AddRole(): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const navigate = useNavigate();
  const may = useAllowed("manage_roles");
  const add = useMutation({
    mutationFn: (body: { name: string; description?: string }) => api("POST /api/auth/roles", { body }),
    onSuccess: async ({ name }) => {
      dialog.current?.close();
      await accessChanged();
      await navigate({ to: "/access", search: { tab: "roles", role: name } });
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const description = String(form.get("description") ?? "").trim();
    add.mutate({ name: String(form.get("name") ?? "").trim(), ...(description !== "" && { description }) });
  };
  return (
    <>
      <AllowedButton may={may} onClick={() => dialog.current?.showModal()}>
        Add a role …
      </AllowedButton>
      <dialog ref={dialog} aria-labelledby="add-role" onClose={() => add.reset()}>
        <form className="stack" onSubmit={submit}>
          <h1 id="add-role">Add a role</h1>
          <p>It grants nothing at first. Add its permissions on its page.</p>
          <label className="field">
            Name
            <input name="name" required pattern="[a-z][a-z0-9_\-]*" maxLength={64} autoComplete="off" />
          </label>
          <p className="quiet">Lower-case letters, digits, _ and -, starting with a letter.</p>
          <label className="field">
            What it is for
            <input name="description" maxLength={1000} autoComplete="off" />
          </label>
          <DialogEnd action={add} submit="Add" onClose={() => dialog.current?.close()} />
        </form>
      </dialog>
    </>
  );
}
