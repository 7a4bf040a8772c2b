import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import { kindText } from "../catalog/kinds.ts";
import { ProblemPanel } from "../parts/problem.tsx";
import { credentialUses } from "./queries.ts";

/** Uses that are loaded at once: before deleting a credential it is enough to see a few, and that there are more. */
const LOOKED_FOR = 20;

function useUses(name: string) {
  const pages = useInfiniteQuery(credentialUses(name));
  const items = pages.data?.pages.flatMap((page) => page.items) ?? [];
  const hidden = pages.data?.pages.reduce((sum, page) => sum + page.hidden, 0) ?? 0;
  const { hasNextPage, isFetching, isError, fetchNextPage } = pages;
  const looksOn = hasNextPage && items.length < LOOKED_FOR;
  useEffect(() => {
    if (looksOn && !isFetching && !isError) void fetchNextPage();
  }, [looksOn, isFetching, isError, fetchNextPage]);
  return { pages, items, hidden, isLooking: pages.isPending || (looksOn && !isError) };
}

/** What names a credential, with the places in the documents. */
export function CredentialUses({ name }: { name: string }): ReactNode {
  const { pages, items, hidden, isLooking } = useUses(name);
  return (
    <section className="panel scroll" aria-label="Uses">
      <h2>What uses it</h2>
      {pages.isError && <ProblemPanel error={pages.error} again={() => void pages.refetch()} />}
      {isLooking && <p className="quiet">Looking through the catalog …</p>}
      {!isLooking && !pages.isError && items.length === 0 && hidden === 0 && (
        <p>
          No playbook, agent or MCP server uses it in its newest version. One can still be given its name with the
          inputs of a run.
        </p>
      )}
      {items.length > 0 && (
        <table>
          <thead>
            <tr>
              <th>Path</th>
              <th>Kind</th>
              <th>Where</th>
            </tr>
          </thead>
          <tbody>
            {items.map((item) => (
              <tr key={item.path}>
                <td className="wrap">
                  <Link to="/entry/$" params={{ _splat: item.path }} search={{ tab: "credentials" }}>
                    {item.path}
                  </Link>{" "}
                  <span className="quiet">v{item.version}</span>
                </td>
                <td>{kindText(item.kind)}</td>
                <td>
                  {item.places.map(({ place, by_default }) => (
                    <div key={place}>
                      <code className="wrap">{place}</code>
                      {by_default && <span className="quiet"> unless a run is given another</span>}
                    </div>
                  ))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {hidden > 0 && <p className="quiet">{hiddenText(hidden)}</p>}
      {pages.hasNextPage && !isLooking && (
        <button type="button" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          More
        </button>
      )}
    </section>
  );
}

/** The same in a few lines, for the dialog that deletes it. */
export function UsesInShort({ name }: { name: string }): ReactNode {
  const { pages, items, hidden, isLooking } = useUses(name);
  if (isLooking) return <p className="quiet">Looking for uses …</p>;
  if (pages.isError) return <p className="problem wrap">Its uses could not be read: {pages.error.message}</p>;
  if (items.length + hidden === 0) return <p>Nothing in the catalog uses it.</p>;
  return (
    <div>
      <p className="problem">These use it and will fail without it:</p>
      <ul>
        {items.slice(0, LOOKED_FOR).map(({ path }) => (
          <li key={path} className="wrap">
            {path}
          </li>
        ))}
        {(items.length > LOOKED_FOR || pages.hasNextPage) && <li>and more</li>}
      </ul>
      {hidden > 0 && <p>{hiddenText(hidden)}</p>}
    </div>
  );
}

function hiddenText(hidden: number): string {
  return hidden === 1 ? "One more uses it, which you may not see." : `${hidden} more use it, which you may not see.`;
}
