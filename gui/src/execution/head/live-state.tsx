import type { ReactNode } from "react";
import type { LiveState } from "../../api/live.ts";
import { useNow } from "../../parts/now.tsx";

/** Whether the shown state is current; nothing once it no longer changes. */
export function Live({ state }: { state: LiveState }): ReactNode {
  if (state.is === "ended") return null;
  const { text, tone } = looks(state);
  return (
    <span className={`live-state tone-${tone}`} data-live={state.is}>
      <span role="status">{text}</span>
      {state.is === "lost" && <Countdown to={state.tryAt} />}
    </span>
  );
}

function looks(state: Exclude<LiveState, { is: "ended" }>): { text: string; tone: string } {
  if (state.is === "live") return { text: "live", tone: "good" };
  if (state.is === "connecting") return { text: "connecting …", tone: "quiet" };
  if (state.is === "crowded") return { text: "not live, read every 3 s: too many live pages are open", tone: "warn" };
  if (state.is === "lost") return { text: "connection lost, trying again", tone: "warn" };
  const { status, message } = state.problem;
  if (status === 401) return { text: "not live: log in again", tone: "bad" };
  if (status === 403) return { text: "not live: you may not follow it", tone: "bad" };
  return { text: `not live: ${status === 404 ? "it is gone" : message}`, tone: "bad" };
}

/** Outside the status, so that screen readers do not announce a number each second. */
function Countdown({ to }: { to: number }): ReactNode {
  const seconds = Math.ceil((to - useNow()) / 1_000);
  return <span> {seconds > 0 ? `in ${seconds} s` : "now"}</span>;
}
