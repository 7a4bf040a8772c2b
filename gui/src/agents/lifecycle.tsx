import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { answerOf, api } from "../api/client.ts";
import type { CatalogItem } from "../api/types.ts";
import { catalogEntry } from "../app/queries.ts";

/** MCP servers of the catalog, with a button for each playbook that looks after one. */
export function Lifecycle({ servers }: { servers: readonly CatalogItem[] }): ReactNode {
  if (servers.length === 0) return null;
  return (
    <section className="panel stack">
      <h2>MCP servers</h2>
      {servers.map((server) => (
        <Server key={server.path} server={server} />
      ))}
    </section>
  );
}

function Server({ server }: { server: CatalogItem }): ReactNode {
  const entry = useQuery(catalogEntry(server.path, String(server.version)));
  const navigate = useNavigate();
  const dispatch = useMutation({
    mutationFn: (action: string) =>
      answerOf(
        api.POST("/api/mcp/mcp/{resource_path}/lifecycle/{action}", {
          params: { path: { resource_path: server.path, action } },
          body: {},
        }),
      ),
    onSuccess: ({ execution_id }) =>
      void navigate({ to: "/executions/$executionId", params: { executionId: execution_id } }),
  });
  const spec = entry.data?.payload["spec"] as Record<string, unknown> | undefined;
  const actions = Object.keys((spec?.["lifecycle"] as Record<string, unknown> | undefined) ?? {});
  return (
    <div className="row spread">
      <div>
        {server.path} <span className="quiet mono">{String(spec?.["endpoint"] ?? "")}</span>
      </div>
      <div className="row">
        {actions.map((action) => (
          <button key={action} type="button" disabled={dispatch.isPending} onClick={() => dispatch.mutate(action)}>
            {action}
          </button>
        ))}
        {dispatch.isError && <span role="alert">{dispatch.error.message}</span>}
      </div>
    </div>
  );
}
