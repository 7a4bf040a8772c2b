import type { Verdict } from "../../schema/api/overview.ts";
import { counted } from "../diagnosis/finding.ts";
import { type CauseLimits, causesOf, type Seen } from "./causes.ts";

/** Why nothing is running, or that everything is well, in one sentence. */
export function verdictOf(seen: Seen, limits?: CauseLimits): Verdict {
  const causes = causesOf(seen, limits);
  const [first] = causes;
  if (first === undefined) return { level: "good", what: wellSentence(seen), causes };
  return { level: first.level === "anomaly" ? "bad" : "warn", what: first.what, causes };
}

/** What a healthy service does at the moment; why nothing runs where nothing does. */
function wellSentence({ workers, queue, executions }: Seen): string {
  const items = workers?.items ?? [];
  const ready = items.filter(({ status }) => status === "ready");
  const running = items.reduce((sum, worker) => sum + worker.running, 0);
  const free = ready.reduce((sum, worker) => sum + Math.max(0, worker.capacity - worker.running), 0);
  const waiting = queue?.waiting.count ?? 0;
  const room = `${counted(ready.length, "worker")} ${ready.length === 1 ? "is" : "are"} ready with ${counted(free, "free slot")}`;
  if (running > 0 || waiting > 0) {
    const more = queue?.waiting.more ? "more than " : "";
    const runs = `${counted(running, "command")} ${running === 1 ? "runs" : "run"}`;
    const waits = `${more}${waiting} about to be taken`;
    const parts = [...(running > 0 ? [runs] : []), ...(waiting > 0 ? [waits] : [])];
    return `Work goes on: ${parts.join(", ")}; ${room}.`;
  }
  const open = (executions?.running.count ?? 0) + (executions?.pending.count ?? 0);
  const paused = executions?.paused.count ?? 0;
  if (open > 0)
    return `${counted(open, "execution")} ${open === 1 ? "is" : "are"} open, and wait for time or for one another; ${room}.`;
  if (paused > 0) return `Nothing runs, because what is open is paused (${counted(paused, "execution")}); ${room}.`;
  return `Nothing runs, because nothing was started; ${room}.`;
}
