import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import { me, queries } from "../api/queries.ts";
import { momentText } from "../parts/time.ts";
import { logOut } from "./provider.ts";
import { onSession } from "./session-channel.ts";
import "../styles/login.css";

/** How soon an ended session is noticed without any action, milliseconds. */
const CHECK_MS = 60_000;

/** The current user, their roles, and the way to log out. */
export function Who(): ReactNode {
  const { data: user } = useQuery({ ...me(), refetchInterval: CHECK_MS });
  const navigate = useNavigate();
  const leave = useMutation({
    mutationFn: logOut,
    onSuccess: async () => {
      queries.clear();
      await navigate({ to: "/login" });
    },
  });
  // Another tab has logged in as another user, or out: what is shown here belongs to the previous user.
  useEffect(() => onSession(() => void queries.resetQueries()), []);
  if (user?.kind !== "user") return null;
  return (
    <details className="menu who">
      <summary className="button">{user.display_name}</summary>
      <div className="panel stack">
        <dl className="facts">
          <dt>Address</dt>
          <dd>{user.email}</dd>
          <dt>Roles</dt>
          <dd>{user.roles.length === 0 ? "none yet" : user.roles.join(", ")}</dd>
          <dt>Session</dt>
          <dd>until {momentText(Date.parse(user.expires_at)).slice(0, 16)}</dd>
        </dl>
        <button type="button" disabled={leave.isPending} onClick={() => leave.mutate()}>
          Log out
        </button>
        {leave.isError && (
          <p role="alert" className="tone-bad wrap">
            You are still logged in: {leave.error.message}
          </p>
        )}
      </div>
    </details>
  );
}

/** Shown to a new user without permissions: else every list would only be empty. */
export function NoRoleYet(): ReactNode {
  const { data: user } = useQuery(me());
  if (user?.kind !== "user" || user.roles.length > 0) return null;
  return (
    <section className="panel tone-warn no-role" role="status">
      <h2>You have no role yet</h2>
      <p className="wrap">
        You are logged in as {user.email}, and may neither see nor run anything. Ask an administrator to give you a
        role.
      </p>
      <button type="button" onClick={() => void queries.invalidateQueries()}>
        Look again
      </button>
    </section>
  );
}
