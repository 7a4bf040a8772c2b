import type { ReactNode } from "react";
import type { Worker } from "../api/types.ts";
import { Status } from "../parts/status.tsx";
import { durationText } from "../parts/time.ts";

/** Who works, how busy they are, and when they last said so. */
export function Workers({ workers }: { workers: readonly Worker[] }): ReactNode {
  if (workers.length === 0) {
    return (
      <section className="panel tone-warn">
        <h2>No worker has ever registered here</h2>
        <p>
          Nothing can run. Start one: <code>flow serve --role worker</code>
        </p>
      </section>
    );
  }
  return (
    <section className="panel scroll">
      <h2>Workers</h2>
      <table>
        <thead>
          <tr>
            <th>Name</th>
            <th>State</th>
            <th>Running</th>
            <th>Heartbeat</th>
            <th className="wide">Kinds</th>
            <th className="wide">Labels</th>
            <th className="wide">Runs on</th>
          </tr>
        </thead>
        <tbody>
          {workers.map((worker) => (
            <tr key={worker.runtime_id}>
              <td>{worker.name}</td>
              <td>
                <Status of={worker.status} />
              </td>
              <td className="number">
                {worker.running} of {worker.capacity}
              </td>
              <td className="number">{durationText(worker.heartbeat_age_ms)} ago</td>
              <td className="wide">{worker.capabilities.join(", ")}</td>
              <td className="wide mono">{pairs(worker.labels)}</td>
              <td className="wide mono">{pairs(worker.runtime)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function pairs(values: Readonly<Record<string, unknown>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
}
