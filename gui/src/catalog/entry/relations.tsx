import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { isJsonObject, type Json } from "../../../../src/schema/words/json.ts";
import { catalogList, catalogVersions } from "../../api/queries.ts";
import { triggerList } from "../../api/triggers.ts";
import type { Resource } from "../../api/types.ts";
import { Ago } from "../../parts/now.tsx";
import { isTemplate } from "../../parts/read-yaml.ts";

/** Versions that are listed; the tab has all. */
const VERSIONS_MAX = 5;

/** Whom a playbook calls, and who calls it. */
export function Relations({ entry: { path, payload } }: { entry: Resource }): ReactNode {
  const called = useMemo(() => [...new Set(calledPaths(payload as Json))], [payload]);
  const callers = useInfiniteQuery(catalogList({ calls: path }));
  const calling = callers.data?.pages.flatMap(({ resources }) => resources) ?? [];
  return (
    <section className="card">
      <header>
        <h2>Calls</h2>
      </header>
      <dl className="pad facts relations">
        <dt>It calls</dt>
        <dd>{called.length === 0 ? <span className="quiet">no playbook</span> : <Paths paths={called} />}</dd>
        <dt>Called by</dt>
        <dd>
          {callers.isPending ? (
            <span className="quiet">…</span>
          ) : calling.length === 0 ? (
            <span className="quiet">no playbook by this name</span>
          ) : (
            <Paths paths={calling.map((one) => one.path)} />
          )}
          {callers.hasNextPage && (
            <button type="button" className="plain" onClick={() => void callers.fetchNextPage()}>
              More
            </button>
          )}
        </dd>
      </dl>
    </section>
  );
}

function Paths({ paths }: { paths: readonly string[] }): ReactNode {
  return paths.map((path) => (
    <div key={path} className="wrap">
      {isTemplate(path) ? (
        <code>{path}</code>
      ) : (
        <Link to="/entry/$" params={{ _splat: path.replace(/^\/+/, "") }}>
          {path}
        </Link>
      )}
    </div>
  ));
}

/** Paths that tasks anywhere in a document call, as written. */
function calledPaths(value: Json): string[] {
  if (Array.isArray(value)) return value.flatMap(calledPaths);
  if (!isJsonObject(value)) return [];
  const path = value["kind"] === "playbook" ? value["path"] : undefined;
  return [...(typeof path === "string" ? [path] : []), ...Object.values(value).flatMap(calledPaths)];
}

/** What starts it by itself. */
export function EntryTriggers({ path }: { path: string }): ReactNode {
  const { data } = useInfiniteQuery(triggerList({ path }));
  const triggers = data?.pages.flatMap((page) => page.triggers) ?? [];
  return (
    <section className="card">
      <header>
        <h2>Triggers</h2>
        {triggers.length > 0 && <span className="aside number">{triggers.length}</span>}
      </header>
      {triggers.length === 0 ? (
        <p className="pad quiet">{data === undefined ? "Loading …" : "No triggers"}</p>
      ) : (
        <ul className="lines two">
          {triggers.map(({ trigger_id: triggerId, name, kind, enabled, next_fire: next }) => (
            <li key={triggerId}>
              <span>
                <Link to="/triggers/$triggerId" params={{ triggerId }} className="plain-link">
                  <b>{name}</b>
                </Link>
                <small>{kind}</small>
              </span>
              <span className="quiet">{enabled ? next !== null && <Ago at={next} /> : "off"}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** Its newest versions, each with what it changed. */
export function NewestVersions({ entry: { path } }: { entry: Resource }): ReactNode {
  const { data } = useInfiniteQuery(catalogVersions(path));
  const versions = data?.pages[0]?.versions.slice(0, VERSIONS_MAX) ?? [];
  return (
    <section className="card">
      <header>
        <h2>Versions</h2>
        <Link from="/entry/$" to="." search={(before) => ({ ...before, tab: "versions" })} className="aside">
          All versions
        </Link>
      </header>
      <ul className="lines two">
        {versions.map(({ version, created_at: at }) => (
          <li key={version}>
            <Link
              from="/entry/$"
              to="."
              search={(before) => ({ ...before, tab: "versions", version: String(version), against: undefined })}
            >
              Version {version}
            </Link>
            <span className="quiet">
              <Ago at={at} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
