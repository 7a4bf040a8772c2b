import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Ago } from "../parts/now.tsx";
import { Status } from "../parts/status.tsx";
import { type PastCall, pastCalls } from "./history.ts";
import { requestedBy } from "./offers.ts";

/** What was called in this browser, newest first. It is read when the page is drawn: a call that ends draws it again. */
export function PastCalls({ onRepeat }: { onRepeat(call: PastCall): void }): ReactNode {
  const calls = pastCalls();
  if (calls.length === 0) return null;
  return (
    <section className="panel scroll">
      <h2>Calls of this browser</h2>
      <table>
        <thead>
          <tr>
            <th>When</th>
            <th>What</th>
            <th className="wide">Server</th>
            <th className="wide">Agent</th>
            <th>Execution</th>
            <th>
              <span className="unseen">Repeat</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {calls.map((call) => (
            <tr key={call.executionId}>
              <td className="number">
                <Ago at={call.at} />
              </td>
              <td className="wrap">{call.what}</td>
              <td className="wrap wide">{call.server}</td>
              <td className="wrap wide">{call.agent}</td>
              <td>
                {/* A call that nobody waited for may have ended since: its page knows. */}
                {call.status !== "RUNNING" && <Status of={call.status} short />}
                <Link to="/executions/$executionId" params={{ executionId: call.executionId }} className="mono">
                  {call.executionId}
                </Link>
              </td>
              <td>
                {call.workload !== undefined && requestedBy(call.workload) !== undefined && (
                  <button type="button" onClick={() => onRepeat(call)}>
                    Repeat …
                  </button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
