import { Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useCallback } from "react";
import type { CatalogItem } from "../api/types.ts";
import { Ago } from "../parts/now.tsx";
import { Status } from "../parts/status.tsx";
import { useRowKeys } from "../parts/use-row-keys.ts";
import { kindText } from "./kinds.ts";

/** The rows of the catalog. */
export function CatalogTable({ rows }: { rows: readonly CatalogItem[] }): ReactNode {
  const navigate = useNavigate();
  const open = useCallback(
    (position: number) => {
      const row = rows[position];
      if (row !== undefined) void navigate({ to: "/entry/$", params: { _splat: row.path } });
    },
    [rows, navigate],
  );
  const [at, body] = useRowKeys(rows.length, open);
  return (
    <div className="panel scroll">
      <table>
        <thead>
          <tr>
            <th>Path</th>
            <th className="wide">Description</th>
            <th>Version</th>
            <th className="wide">Kind</th>
            <th className="wide">Registered</th>
          </tr>
        </thead>
        <tbody ref={body}>
          {rows.map((row, position) => (
            <tr key={row.path} aria-selected={position === at}>
              <td className="wrap">
                <Link to="/entry/$" params={{ _splat: row.path }} className="name">
                  {row.path}
                </Link>
                {row.paused !== undefined && (
                  <>
                    {" "}
                    <Status of="PAUSED" />
                  </>
                )}
              </td>
              <td className="one wide quiet" title={descriptionOf(row.metadata)}>
                {descriptionOf(row.metadata)}
              </td>
              <td className="number">v{row.version}</td>
              <td className="wide quiet">{kindText(row.kind)}</td>
              <td className="number wide quiet">
                <Ago at={row.created_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What a document says of itself. */
export function descriptionOf(metadata: Readonly<Record<string, unknown>>): string {
  const description = metadata["description"];
  return typeof description === "string" ? description : "";
}
