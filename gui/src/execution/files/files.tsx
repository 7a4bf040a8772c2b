import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { FileText } from "lucide-react";
import { type ReactNode, useState } from "react";
import "../../styles/files.css";
import { type Answer, api } from "../../api/client.ts";
import type { Execution } from "../../api/types.ts";
import { bytesText, payloadAddress } from "../../parts/json/reference.ts";
import { Download } from "../../parts/json/reference-view.tsx";
import { Ago } from "../../parts/now.tsx";
import { ProblemPanel } from "../../parts/problem.tsx";
import { previewKind } from "./kinds.ts";
import { Preview } from "./preview.tsx";

type StoredFile = Answer<"GET /api/executions/:execution_id/artifacts">["artifacts"][number];

/** How often it looks for further files while the execution is open, milliseconds. */
const LOOK_MS = 5_000;

/** The files that tasks of the execution have stored. */
export default function Files({ execution }: { execution: Execution }): ReactNode {
  const { execution_id, ended_at } = execution;
  const files = useQuery({
    queryKey: ["files", execution_id, ended_at === null],
    queryFn: ({ signal }) => api("GET /api/executions/:execution_id/artifacts", { params: { execution_id }, signal }),
    refetchInterval: ended_at === null ? LOOK_MS : false,
  });
  if (files.isError && files.data === undefined)
    return <ProblemPanel error={files.error} again={() => void files.refetch()} />;
  if (files.data === undefined) return <p className="quiet">Loading …</p>;
  const { artifacts, truncated } = files.data;
  return (
    <section className="panel stack" aria-label="Files">
      {artifacts.length === 0 && (
        <p>
          No task has stored a file{ended_at === null ? " yet" : ""}. Code does so in the folder{" "}
          <code>FLOW_ARTIFACTS</code>, other tasks with <code>kind: artifact</code> and <code>action: put</code>.
        </p>
      )}
      {artifacts.length > 0 && (
        <ul className="lines files">
          {artifacts.map((file) => (
            <File key={file.ref} file={file} />
          ))}
        </ul>
      )}
      {truncated && <p className="quiet">There are more than these {artifacts.length}.</p>}
    </section>
  );
}

function File({ file }: { file: StoredFile }): ReactNode {
  const [isOpen, setIsOpen] = useState(false);
  const { name, step, ref, content_type, bytes, sha256, created_at, reused_from } = file;
  const kind = previewKind(content_type, bytes);
  return (
    <li>
      <FileText className="icon" aria-hidden="true" />
      <span>
        <b>{name}</b>
        <small>
          {step} · {content_type} · {bytesText(bytes)} · <Ago at={created_at} />
          {reused_from !== undefined && (
            <>
              {" · reused from "}
              <Link to="/executions/$executionId" params={{ executionId: reused_from }} search={{ tab: "files" }}>
                {reused_from}
              </Link>
            </>
          )}
        </small>
        <small className="mono">sha256 {sha256}</small>
      </span>
      <span className="row">
        {kind !== undefined && (
          <button type="button" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
            {isOpen ? "Hide" : "Show"}
          </button>
        )}
        <Download address={payloadAddress(ref)} name={name} />
      </span>
      {isOpen && kind !== undefined && (
        <div className="preview stack">
          <Preview refOf={ref} name={name} bytes={bytes} kind={kind} />
        </div>
      )}
    </li>
  );
}
