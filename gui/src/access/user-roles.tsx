import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { api } from "../api/client.ts";
import type { User } from "../api/types.ts";
import { useAllowed } from "../parts/allowed.ts";
import { AllowedButton } from "../parts/allowed-button.tsx";
import { Ago } from "../parts/now.tsx";
import { Confirm } from "./confirm.tsx";
import { accessChanged, roleList } from "./queries.ts";

/** The roles of a user: give one, take one away. */
export function UserRoles({ user }: { user: User }): ReactNode {
  const may = useAllowed("manage_users");
  const path = { user: String(user.user_id) };
  const take = (role: string) => api("DELETE /api/auth/users/:user/roles/:role", { params: { ...path, role } });
  return (
    <section className="panel stack">
      <h2>Roles</h2>
      {user.roles.length === 0 && <p className="quiet">None: they may log in but do nothing.</p>}
      {user.roles.length > 0 && (
        <div className="scroll">
          <table>
            <thead>
              <tr>
                <th>Role</th>
                <th className="wide">Given by</th>
                <th className="wide">When</th>
                <th>
                  <span className="unseen">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {user.roles.map(({ role, is_active, granted_by, granted_at }) => (
                <tr key={role}>
                  <td>
                    <Link to="/access" search={{ tab: "roles", role }}>
                      {role}
                    </Link>{" "}
                    {!is_active && <span className="quiet">(inactive)</span>}
                  </td>
                  <td className="wide wrap">{granted_by ?? "an operator"}</td>
                  <td className="wide">
                    <Ago at={granted_at} />
                  </td>
                  <td className="actions">
                    <Confirm
                      label="Remove …"
                      name={`Remove ${role}`}
                      title={`Remove the role ${role} from ${user.email}?`}
                      action="Remove"
                      may={may}
                      run={() => take(role)}
                    >
                      It takes effect with their next call.
                    </Confirm>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <GiveRole user={user} />
    </section>
  );
}

function GiveRole({ user }: { user: User }): ReactNode {
  const may = useAllowed("manage_users");
  const roles = useInfiniteQuery(roleList());
  const [role, setRole] = useState("");
  const give = useMutation({
    mutationFn: () => api("PUT /api/auth/users/:user/roles/:role", { params: { user: String(user.user_id), role } }),
    onSuccess: async () => {
      setRole("");
      await accessChanged();
    },
  });
  const names = roles.data?.pages.flatMap((page) => page.roles.map(({ name }) => name)) ?? [];
  const others = names.filter((name) => !user.roles.some((has) => has.role === name));
  return (
    <div className="row">
      <label>
        Role to add
        <select value={role} onChange={(event) => setRole(event.target.value)}>
          <option value="">choose …</option>
          {others.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <AllowedButton may={may} disabled={role === "" || give.isPending} onClick={() => give.mutate()}>
        Add role
      </AllowedButton>
      {give.isError && (
        <p role="alert" className="tone-bad wrap">
          {give.error.message}
        </p>
      )}
    </div>
  );
}
