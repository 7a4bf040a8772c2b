import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import { credentialList } from "../app/queries.ts";
import { Ago } from "../parts/now.tsx";
import { ProblemPanel } from "../parts/problem.tsx";

const route = getRouteApi("/credentials");

/** Which credentials there are. What they hold is never sent to a browser. */
export function CredentialsPage(): ReactNode {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const pages = useInfiniteQuery(credentialList({ q: search.q }));
  const [text, setText] = useState(search.q ?? "");
  useEffect(() => setText(search.q ?? ""), [search.q]);
  const keep = () => void navigate({ search: { ...search, q: text.trim() || undefined }, replace: true });
  const items = pages.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <div className="stack">
      <h1>Credentials</h1>
      <form
        className="row"
        onSubmit={(event) => {
          event.preventDefault();
          keep();
        }}
      >
        <label>
          Name or description
          <input data-filter value={text} onChange={(event) => setText(event.target.value)} onBlur={keep} />
        </label>
      </form>
      {pages.isError && <ProblemPanel error={pages.error} again={() => void pages.refetch()} />}
      {pages.isPending && <p className="quiet">Loading …</p>}
      {pages.isSuccess && items.length === 0 && (
        <section className="panel">
          <h2>No credential is like this</h2>
          <p>
            They are kept with <code>flow credentials set</code>: a browser never sees what they hold.
          </p>
        </section>
      )}
      {items.length > 0 && (
        <div className="panel scroll">
          <table>
            <thead>
              <tr>
                <th>Name</th>
                <th>Type</th>
                <th>Tags</th>
                <th>Changed</th>
                <th className="wide">Description</th>
              </tr>
            </thead>
            <tbody>
              {items.map((item) => (
                <tr key={item.id}>
                  <td>{item.name}</td>
                  <td>{item.type}</td>
                  <td>{item.tags?.join(", ")}</td>
                  <td>
                    <Ago at={item.updated_at} />
                  </td>
                  <td className="wide">{item.description}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {pages.hasNextPage && (
        <button type="button" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          More
        </button>
      )}
    </div>
  );
}
