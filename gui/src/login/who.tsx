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

/** The user of this page, while it is looked after: a session that ends or changes in another tab is noticed. */
export function useWho() {
  const { data: user } = useQuery({ ...me(), refetchInterval: CHECK_MS });
  // Another tab has logged in as another user, or out: what is shown here belongs to the previous user.
  useEffect(() => onSession(() => void queries.resetQueries()), []);
  return user;
}

/** The current user's address, roles and session, and the way to log out. */
export function WhoFacts(): ReactNode {
  const { data: user } = useQuery(me());
  const navigate = useNavigate();
  const leave = useMutation({
    mutationFn: logOut,
    onSuccess: async () => {
      queries.clear();
      await navigate({ to: "/login" });
    },
  });
  if (user?.kind !== "user") return null;
  return (
    <div className="pad stack tight">
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
        <p role="alert" className="problem wrap">
          The logout failed, and you are still logged in: {leave.error.message}
        </p>
      )}
    </div>
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
