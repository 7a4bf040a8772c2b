/** The tabs of one browser share a session: a change in one of them reaches the others. */

const channel = new BroadcastChannel("flow.session");

/** Notifies the other tabs that this one has logged in or out. */
export function announceSession(change: "in" | "out"): void {
  channel.postMessage(change);
}

/** Calls `listener` when another tab has logged in or out; ends when the function that it gives is called. */
export function onSession(listener: (change: "in" | "out") => void): () => void {
  const hear = ({ data }: MessageEvent<unknown>) => {
    if (data === "in" || data === "out") listener(data);
  };
  channel.addEventListener("message", hear);
  return () => channel.removeEventListener("message", hear);
}
