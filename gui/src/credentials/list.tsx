import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ReactNode, useCallback, useEffect, useState } from "react";
import { CREDENTIAL_TYPES } from "../../../src/schema/rules/credential-types.ts";
import { credentialList } from "../api/queries.ts";
import type { Credential } from "../api/types.ts";
import { Ago } from "../parts/now.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { useRowKeys } from "../parts/use-row-keys.ts";

const route = getRouteApi("/credentials");

/** The credentials by their names, with filters that stand in the address. */
export function CredentialList(): ReactNode {
  const { q, tag, type: written } = route.useSearch();
  const type = CREDENTIAL_TYPES.find((one) => one === written);
  const pages = useInfiniteQuery(credentialList({ q, tag, type }));
  const items = pages.data?.pages.flatMap((page) => page.items) ?? [];
  const isFiltered = q !== undefined || tag !== undefined || type !== undefined;
  return (
    <div className="stack">
      <div className="row spread">
        <h1>Credentials</h1>
        <Link to="/credentials" search={{ form: "new" }} className="button">
          New credential …
        </Link>
      </div>
      {!(pages.isError && items.length === 0) && <Filters />}
      {pages.isError && <ProblemPanel error={pages.error} again={() => void pages.refetch()} />}
      {pages.isPending && <p className="quiet">Loading …</p>}
      {pages.isSuccess && items.length === 0 && (
        <section className="panel">
          <h2>{isFiltered ? "No matching credentials" : "No credentials yet"}</h2>
          <p>
            {isFiltered ? (
              <Link to="/credentials">Show all of them</Link>
            ) : (
              <Link to="/credentials" search={{ form: "new" }}>
                Create one
              </Link>
            )}
            , or <code>flow credentials set</code>. What they hold is written here and never shown.
          </p>
        </section>
      )}
      {items.length > 0 && <Table items={items} />}
      {pages.hasNextPage && (
        <button type="button" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          More
        </button>
      )}
    </div>
  );
}

function Table({ items }: { items: readonly Credential[] }): ReactNode {
  const navigate = route.useNavigate();
  const open = useCallback(
    (position: number) => void navigate({ search: { name: items[position]?.name } }),
    [items, navigate],
  );
  const [at, body] = useRowKeys(items.length, open);
  return (
    <div className="panel scroll">
      <table>
        <thead>
          <tr>
            <th>Name</th>
            <th>Type</th>
            <th>Playbooks</th>
            <th className="wide">Tags</th>
            <th>Changed</th>
            <th className="wide">Description</th>
          </tr>
        </thead>
        <tbody ref={body}>
          {items.map((item, position) => (
            <tr key={item.id} aria-selected={position === at}>
              <td className="wrap">
                <Link to="/credentials" search={{ name: item.name }} className="name">
                  {item.name}
                </Link>
              </td>
              <td>{item.type}</td>
              <td className="wrap">
                {item.playbooks?.length === 0 ? <strong>none</strong> : item.playbooks?.join(", ")}
              </td>
              <td className="wrap wide">{item.tags.join(", ")}</td>
              <td className="number">
                <Ago at={item.updated_at} />
              </td>
              <td className="one wide" title={item.description ?? ""}>
                {item.description}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Filters(): ReactNode {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [q, setQ] = useState(search.q ?? "");
  const [tag, setTag] = useState(search.tag ?? "");
  useEffect(() => setQ(search.q ?? ""), [search.q]);
  useEffect(() => setTag(search.tag ?? ""), [search.tag]);
  const keep = (change: Partial<typeof search>) => void navigate({ search: { ...search, ...change }, replace: true });
  const keepTexts = () => keep({ q: q.trim() || undefined, tag: tag.trim() || undefined });
  return (
    <form
      className="row filters"
      onSubmit={(event) => event.preventDefault()}
      // A form of several fields and no button is not submitted by Enter.
      onKeyDown={({ key }) => key === "Enter" && keepTexts()}
    >
      <label>
        Text
        <input
          data-filter
          placeholder="name, description or tag"
          value={q}
          onChange={(event) => setQ(event.target.value)}
          onBlur={keepTexts}
        />
      </label>
      <label>
        Tag
        <input value={tag} onChange={(event) => setTag(event.target.value)} onBlur={keepTexts} />
      </label>
      <label>
        Type
        <select value={search.type ?? ""} onChange={(event) => keep({ type: event.target.value || undefined })}>
          <option value="">all</option>
          {CREDENTIAL_TYPES.map((type) => (
            <option key={type}>{type}</option>
          ))}
        </select>
      </label>
    </form>
  );
}
