import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Problem } from "../api/problem.ts";
import { Ago } from "../parts/now.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { credentialAudit } from "./queries.ts";

const WORDS: Readonly<Record<string, string>> = {
  "credential.create": "made",
  "credential.replace": "replaced",
  "credential.read": "read",
  "credential.delete": "deleted",
};

/** When it was created and last replaced, and who read it, from the audit log. */
export function CredentialHistory({ name }: { name: string }): ReactNode {
  const log = useQuery(credentialAudit(name));
  const entries = log.data?.entries ?? [];
  const changes = entries.filter(({ action }) => action !== "credential.read");
  return (
    <section className="panel scroll" aria-label="History">
      <h2>History</h2>
      {log.isPending && <p className="quiet">Loading …</p>}
      {log.isError &&
        (log.error instanceof Problem && log.error.status === 403 ? (
          <p>This is in the audit log, which you may not read.</p>
        ) : (
          <ProblemPanel error={log.error} again={() => void log.refetch()} />
        ))}
      {log.isSuccess && entries.length === 0 && <p>No audit entries.</p>}
      {entries.length > 0 && (
        <>
          <p className="quiet">
            {changes[0] === undefined ? (
              "Nothing that is shown here was changed."
            ) : (
              <>
                Changed last <Ago at={changes[0].at} /> by {changes[0].actor ?? changes[0].actor_kind}.
              </>
            )}
          </p>
          <table>
            <thead>
              <tr>
                <th>When</th>
                <th>What</th>
                <th>Who</th>
                <th className="wide">What decided</th>
              </tr>
            </thead>
            <tbody>
              {entries.map((entry) => (
                <tr key={entry.audit_id}>
                  <td className="number">
                    <Ago at={entry.at} />
                  </td>
                  <td>
                    {WORDS[entry.action] ?? entry.action}
                    {entry.result !== "allow" && <span className="status tone-bad"> {entry.result}</span>}
                  </td>
                  <td className="wrap">{entry.actor ?? entry.actor_kind}</td>
                  <td className="wrap wide">{entry.rule}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </section>
  );
}
