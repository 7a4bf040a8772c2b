import { useInfiniteQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { isJsonObject, own } from "../../../../src/schema/words/json.ts";
import { Problem } from "../../api/problem.ts";
import type { Resource } from "../../api/types.ts";
import { Ago, useNow } from "../../parts/now.tsx";
import { ProblemPanel } from "../../parts/problem.tsx";
import { keychainEntries } from "./keychain-query.ts";

/** The keychain of a version: what its document declares, and what is kept under its catalog id. Never a value. */
export function EntryKeychain({ entry }: { entry: Resource }): ReactNode {
  return (
    <div className="stack">
      <Declared payload={entry.payload} />
      <Kept catalogId={entry.catalog_id} version={entry.version} />
    </div>
  );
}

function Declared({ payload }: { payload: Resource["payload"] }): ReactNode {
  const written = own(payload, "keychain");
  const entries = Array.isArray(written) ? written.filter(isJsonObject) : [];
  if (entries.length === 0) return <p className="quiet">The document declares no keychain.</p>;
  return (
    <section className="panel scroll">
      <h2>What the document declares</h2>
      <table>
        <thead>
          <tr>
            <th>Name</th>
            <th>Kind</th>
            <th>Scope</th>
            <th>Renewed</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((one, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: entries are identified by their position in the document
            <tr key={index}>
              <td className="wrap">{String(one["name"] ?? "")}</td>
              <td>{String(one["kind"] ?? "")}</td>
              <td>{String(one["scope"] ?? "global")}</td>
              <td>{one["auto_renew"] === true ? "automatic" : "no"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Kept({ catalogId, version }: { catalogId: string; version: number }): ReactNode {
  const pages = useInfiniteQuery(keychainEntries(catalogId));
  const now = useNow();
  const rows = pages.data?.pages.flatMap(({ entries }) => entries) ?? [];
  if (pages.isPending) return <p className="quiet">Loading …</p>;
  if (pages.isError) {
    return pages.error instanceof Problem && pages.error.status === 403 ? (
      <section className="panel">
        <h2>The keychain is for operators</h2>
        <p>
          What is kept for catalog id {catalogId} is shown with a token of the server alone, not to people who log in.
          With it: <code>flow keychain list {catalogId}</code>
        </p>
      </section>
    ) : (
      <ProblemPanel error={pages.error} again={() => void pages.refetch()} />
    );
  }
  return (
    <section className="panel scroll">
      <h2>What is kept for version {version}</h2>
      {rows.length === 0 ? (
        <p>
          Nothing for catalog id <code>{catalogId}</code>. Entries are resolved when a run first reads them; each
          version has its own.
        </p>
      ) : (
        <table>
          <thead>
            <tr>
              <th>Name</th>
              <th>Scope</th>
              <th>Type</th>
              <th>Expires</th>
              <th>Renewed</th>
              <th>Read</th>
              <th className="wide">Key</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.cache_key}>
                <td className="wrap">{row.keychain_name}</td>
                <td>{row.scope_type}</td>
                <td>{row.credential_type}</td>
                <td className="number">
                  {Date.parse(row.expires_at) <= now ? (
                    <span className="status tone-warn">
                      expired <Ago at={row.expires_at} />
                    </span>
                  ) : (
                    <time dateTime={row.expires_at}>{row.expires_at.replace("T", " ").slice(0, 16)} UTC</time>
                  )}
                </td>
                <td>{row.auto_renew ? "automatic" : "no"}</td>
                <td className="number">{row.access_count} times</td>
                <td className="wide wrap mono">{row.cache_key}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {pages.hasNextPage && (
        <button type="button" onClick={() => void pages.fetchNextPage()}>
          More
        </button>
      )}
    </section>
  );
}
