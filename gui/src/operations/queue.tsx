import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Overview } from "../api/types.ts";
import { durationText } from "../parts/time.ts";
import { countText } from "./count-text.ts";
import { NotRead } from "./workers.tsx";

type Why = NonNullable<Overview["queue"]>["groups"][number]["why"];
const WORDS: Record<Why, { text: string; tone: string }> = {
  no_worker: { text: "no worker is ready", tone: "bad" },
  no_kind: { text: "no ready worker takes these kinds", tone: "bad" },
  no_labels: { text: "no ready worker has these labels", tone: "bad" },
  no_both: { text: "no ready worker has both kinds and labels", tone: "bad" },
  busy: { text: "the workers for it are full", tone: "warn" },
  unnoticed: { text: "a worker has room and has not taken it", tone: "bad" },
  soon: { text: "about to be taken", tone: "good" },
};

/** Waiting commands, by what they require of a worker, and why they wait. */
export function Queue({ queue }: { queue: Overview["queue"] }): ReactNode {
  if (queue === null) return <NotRead name="The queue" />;
  const { waiting, oldest_ms: oldestMs, groups } = queue;
  return (
    <section className="panel" data-part="queue">
      <h2>Queue</h2>
      {groups.length === 0 ? (
        <p className="quiet">Nothing waits for a worker.</p>
      ) : (
        <>
          <p>
            {countText(waiting)} {waiting.count === 1 ? "command waits" : "commands wait"}
            {oldestMs !== null && `, the oldest for ${durationText(oldestMs)}`}.
          </p>
          <table className="stacked">
            <thead>
              <tr>
                <th>Waiting</th>
                <th>Oldest</th>
                <th>Asks for</th>
                <th>Why</th>
                <th className="wide">Executions</th>
              </tr>
            </thead>
            <tbody>
              {groups.map((group) => (
                <tr key={`${group.kinds.join()} ${JSON.stringify(group.labels)}`}>
                  <td className="number" data-label="Waiting">
                    {group.count.toLocaleString("en")}
                  </td>
                  <td className="number" data-label="Oldest">
                    {durationText(group.oldest_ms)}
                  </td>
                  <td className="wrap mono" data-label="Asks for">
                    {requirementText(group)}
                  </td>
                  <td className="wrap" data-label="Why">
                    <span className={`status tone-${WORDS[group.why].tone}`}>{WORDS[group.why].text}</span>
                  </td>
                  <td className="wide">
                    <span className="row">
                      {group.execution_ids.slice(0, 3).map((id) => (
                        <Link key={id} to="/executions/$executionId" params={{ executionId: id }} className="mono">
                          {id}
                        </Link>
                      ))}
                      {group.execution_ids.length > 3 && <span className="quiet">…</span>}
                    </span>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </section>
  );
}

function requirementText({ kinds, labels }: NonNullable<Overview["queue"]>["groups"][number]): string {
  const pairs = Object.entries(labels ?? {}).map(([name, value]) => `${name}=${String(value)}`);
  return [kinds.length === 0 ? "any worker" : kinds.join(", "), ...pairs].join(" · ");
}
