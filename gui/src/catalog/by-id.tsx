import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api } from "../api/client.ts";

/** The version with a catalog id, as logs and keychain entries name it. Shows nothing if it does not exist. */
export function ById({ catalogId }: { catalogId: string }): ReactNode {
  const entry = useQuery({
    queryKey: ["catalog", "id", catalogId],
    queryFn: ({ signal }) => api("GET /api/catalog/entries/:catalog_id", { params: { catalog_id: catalogId }, signal }),
  });
  if (entry.data === undefined) return null;
  const { path, version } = entry.data;
  return (
    <p className="panel row">
      Catalog id <code>{catalogId}</code> is
      <Link to="/entry/$" params={{ _splat: path }} search={{ version: String(version) }}>
        {path} v{version}
      </Link>
      <Link to="/entry/$" params={{ _splat: path }} search={{ version: String(version), tab: "keychain" }}>
        its keychain
      </Link>
    </p>
  );
}
