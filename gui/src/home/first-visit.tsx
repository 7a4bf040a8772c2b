import { useMutation } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { Play } from "lucide-react";
import type { ReactNode } from "react";
import { api } from "../api/client.ts";
import { queries } from "../api/queries.ts";
import { useAllowed } from "../parts/allowed.ts";
import { AllowedButton } from "../parts/allowed-button.tsx";
import { CopyButton } from "../parts/copy.tsx";
import { EXAMPLES, type Example, workflowOf } from "./examples.ts";

/** An empty server: three playbooks that are registered and run by one click, and the commands that do the same. */
export function FirstVisit(): ReactNode {
  const commands = EXAMPLES.flatMap((example) => example.commands).join("\n");
  return (
    <div className="stack home">
      <div>
        <h1>Welcome to flow</h1>
        <p className="quiet">
          This server has no playbooks yet. Begin with one of these, or <Link to="/register">register your own</Link>.
        </p>
      </div>
      <div className="examples">
        {EXAMPLES.map((example) => (
          <ExampleCard key={example.path} example={example} />
        ))}
      </div>
      <section className="stack tight">
        <div className="row spread">
          <h2>The same in a terminal, in a checkout of flow</h2>
          <CopyButton label="Copy" text={commands} />
        </div>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what is wider than the page is scrolled by keys */}
        <pre className="terminal" tabIndex={0}>
          {commands}
        </pre>
      </section>
    </div>
  );
}

function ExampleCard({ example }: { example: Example }): ReactNode {
  const { title, about, path, documents } = example;
  const may = useAllowed("modify", { path, to: "register" });
  const begin = useBegin(example);
  return (
    <section className="card example">
      <div>
        <h2>{title}</h2>
        <p className="quiet">{about}</p>
      </div>
      <pre aria-hidden="true">{workflowOf(documents.at(-1) ?? "")}</pre>
      <div className="row">
        <AllowedButton may={may} className="main" disabled={begin.isPending} onClick={() => begin.mutate()}>
          <Play className="icon" aria-hidden="true" />
          {begin.isPending ? "Starting …" : "Register and run"}
          <span className="unseen"> {title}</span>
        </AllowedButton>
        <code className="quiet">{path}</code>
      </div>
      {begin.isError && (
        <p role="alert" className="problem wrap">
          {begin.error.message}
        </p>
      )}
    </section>
  );
}

/** Registers an example's documents and runs the last; its page follows. */
function useBegin({ documents, path }: Example) {
  const navigate = useNavigate();
  return useMutation({
    mutationFn: async () => {
      for (const content of documents) await api("POST /api/catalog/register", { body: { content } });
      return api("POST /api/execute", { body: { path } });
    },
    onSuccess: ({ execution_id: executionId }) => {
      void queries.invalidateQueries();
      return navigate({ to: "/executions/$executionId", params: { executionId } });
    },
  });
}
