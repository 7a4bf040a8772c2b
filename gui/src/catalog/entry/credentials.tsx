import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { credentialUses } from "../../../../src/language/load/credential-uses.ts";
import type { JsonObject } from "../../../../src/schema/words/json.ts";

/** The credentials that a document names, with the places. */
export function EntryCredentials({ payload }: { payload: Readonly<Record<string, unknown>> }): ReactNode {
  const uses = useMemo(() => {
    const found = new Map<string, { place: string; byDefault: boolean }[]>();
    for (const { credential, ...use } of credentialUses(payload as JsonObject)) {
      found.set(credential, [...(found.get(credential) ?? []), use]);
    }
    return [...found];
  }, [payload]);
  if (uses.length === 0) {
    return (
      <section className="panel">
        <h2>It uses no credentials</h2>
        <p>Names that come with a run's inputs, or are worked out in it, are not known before.</p>
      </section>
    );
  }
  return (
    <div className="panel scroll">
      <table>
        <thead>
          <tr>
            <th>Credential</th>
            <th>Where</th>
          </tr>
        </thead>
        <tbody>
          {uses.map(([name, places]) => (
            <tr key={name}>
              <td className="wrap">
                <Link to="/credentials" search={{ name }}>
                  {name}
                </Link>
              </td>
              <td>
                {places.map(({ place, byDefault }) => (
                  <div key={place}>
                    <code className="wrap">{place}</code>
                    {byDefault && <span className="quiet"> unless a run is given another</span>}
                  </div>
                ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
