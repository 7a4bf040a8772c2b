import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { BookText } from "lucide-react";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import "../styles/catalog.css";
import { catalogList } from "../api/queries.ts";
import type { CatalogItem } from "../api/types.ts";
import { useAllowed } from "../parts/allowed.ts";
import { AllowedLink } from "../parts/allowed-link.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { ById } from "./by-id.tsx";
import { CatalogTable, descriptionOf } from "./catalog-table.tsx";
import { KINDS } from "./kinds.ts";

const route = getRouteApi("/catalog");
/** Entries that are read to find a text in them. The server finds beginnings of paths among any number. */
const SEARCHED_MAX = 5_000;
/** Hits that are loaded before the user asks for more. */
const HITS = 50;

/** What is registered: playbooks, agents, MCP servers. */
export function CatalogPage(): ReactNode {
  const { kind, prefix, q } = route.useSearch();
  const pages = useInfiniteQuery(catalogList({ kind, prefix }));
  const rows = useMemo(() => pages.data?.pages.flatMap(({ resources }) => resources) ?? [], [pages.data]);
  const shown = useMemo(() => rows.filter((row) => matches(row, q)), [rows, q]);
  const { hasNextPage, isFetching, fetchNextPage, isError } = pages;
  const searchesOn = q !== undefined && hasNextPage && shown.length < HITS && rows.length < SEARCHED_MAX;
  useEffect(() => {
    if (searchesOn && !isFetching && !isError) void fetchNextPage();
  }, [searchesOn, isFetching, isError, fetchNextPage]);
  const may = useAllowed("modify", { to: "register playbooks" });
  const isFiltered = q !== undefined || kind !== undefined || prefix !== undefined;
  return (
    <div className="stack">
      <div className="row spread">
        <h1>Playbooks</h1>
        <AllowedLink may={may} label="Register …">
          <Link to="/register" className="button">
            Register …
          </Link>
        </AllowedLink>
      </div>
      <Filters />
      {q !== undefined && /^\d{6,16}$/.test(q) && <ById catalogId={q} />}
      {isError && <ProblemPanel error={pages.error} again={() => void pages.refetch()} />}
      {pages.isPending && <p className="quiet">Loading …</p>}
      {pages.isSuccess && shown.length === 0 && !searchesOn && <Nothing isFiltered={isFiltered} />}
      {shown.length > 0 && <CatalogTable rows={shown} />}
      {hasNextPage && (
        <p className="row">
          <button type="button" disabled={pages.isFetchingNextPage} onClick={() => void fetchNextPage()}>
            {pages.isFetchingNextPage ? "Loading …" : "More"}
          </button>
          {q !== undefined && (
            <span className="quiet">
              {shown.length} of the first {rows.length} entries
            </span>
          )}
        </p>
      )}
    </div>
  );
}

function Filters(): ReactNode {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [prefix, setPrefix] = useState(search.prefix ?? "");
  const [q, setQ] = useState(search.q ?? "");
  useEffect(() => setPrefix(search.prefix ?? ""), [search.prefix]);
  useEffect(() => setQ(search.q ?? ""), [search.q]);
  const keep = (change: Partial<typeof search>) => void navigate({ search: { ...search, ...change }, replace: true });
  const keepTexts = () => keep({ prefix: prefix.trim() || undefined, q: q.trim() || undefined });
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
          placeholder="path, description or catalog id"
          value={q}
          onChange={(event) => setQ(event.target.value)}
          onBlur={keepTexts}
        />
      </label>
      <label>
        Path begins with
        <input value={prefix} onChange={(event) => setPrefix(event.target.value)} onBlur={keepTexts} />
      </label>
      <label>
        Kind
        <select
          value={search.kind ?? ""}
          onChange={(event) => keep({ kind: KINDS.find(({ kind }) => kind === event.target.value)?.kind })}
        >
          <option value="">all</option>
          {KINDS.map(({ kind, title }) => (
            <option key={kind} value={kind}>
              {title}
            </option>
          ))}
        </select>
      </label>
    </form>
  );
}

function Nothing({ isFiltered }: { isFiltered: boolean }): ReactNode {
  return (
    <section className="panel empty">
      <BookText className="icon" aria-hidden="true" />
      <h2>{isFiltered ? "No matches" : "No playbooks yet"}</h2>
      <p>
        {isFiltered && (
          <>
            <Link to="/catalog">Show everything</Link>, or write{" "}
          </>
        )}
        {!isFiltered && "Write "}a document <Link to="/register">in the browser</Link>, or{" "}
        <code>flow register playbooks/examples/hello.yaml</code>
      </p>
    </section>
  );
}

function matches(row: CatalogItem, q: string | undefined): boolean {
  if (q === undefined) return true;
  const text = `${row.path}\n${descriptionOf(row.metadata)}`.toLowerCase();
  return q
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
