import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { LiveState } from "../../api/live.ts";
import type { Execution } from "../../api/types.ts";
import { Labels } from "../../parts/labels.tsx";
import { Ago, useNow } from "../../parts/now.tsx";
import { Status } from "../../parts/status.tsx";
import { clockText, momentText } from "../../parts/time.ts";
import { situationOf, stateOfSituation, statusText } from "../summary/situation.ts";
import { Actions } from "./actions.tsx";
import { Callers } from "./callers.tsx";
import { countsText, inputText } from "./facts.ts";
import { Live } from "./live-state.tsx";

/** One line on what it is and how it stands, one on where it comes from, and what can be done with it. */
export function Head({ execution, live }: { execution: Execution; live: LiveState }): ReactNode {
  const folder = execution.path.slice(0, execution.path.lastIndexOf("/") + 1);
  return (
    <header className="run-head">
      {execution.parent_execution_id !== null && (
        <nav aria-label="Who called it" className="callers">
          <Callers parentId={execution.parent_execution_id} />
        </nav>
      )}
      <div className="run-line">
        <h1>
          <Link to="/entry/$" params={{ _splat: execution.path }} className="plain-link wrap">
            {folder !== "" && <span className="folder">{folder}</span>}
            {execution.path.slice(folder.length)}
          </Link>
        </h1>
        <StatusPill execution={execution} />
        <Live state={live} />
        <Actions execution={execution} />
      </div>
      <Meta execution={execution} />
    </header>
  );
}

function StatusPill({ execution }: { execution: Execution }): ReactNode {
  const now = useNow();
  return (
    <span data-part="status" data-situation={situationOf(execution)}>
      <Status of={stateOfSituation(situationOf(execution))} word={statusText(execution, now)} />
    </span>
  );
}

function Meta({ execution }: { execution: Execution }): ReactNode {
  const { version, execution_id: id, started_at, workload, labels = {} } = execution;
  const input = inputText(workload);
  const counts = countsText(execution);
  return (
    <p className="run-meta">
      <span>
        {version === 0 ? (
          <b title="A text that was run without being registered">draft</b>
        ) : (
          <>
            version <b>{version}</b>
          </>
        )}
      </span>
      <span>
        execution <b className="mono">{id}</b>
      </span>
      <span>
        started{" "}
        <b>
          <time dateTime={started_at} title={momentText(Date.parse(started_at))}>
            {clockText(Date.parse(started_at)).slice(0, 8)}
          </time>
        </b>
        , <Ago at={started_at} />
        <StartedBy execution={execution} />
      </span>
      {input !== "" && (
        <span className="cut" title={input}>
          input <b className="mono">{input}</b>
        </span>
      )}
      <span>{counts}</span>
      {Object.keys(labels).length > 0 && (
        <span data-part="labels">
          <Labels labels={labels} />
        </span>
      )}
    </p>
  );
}

/** What started it; a caller is named above the title. */
function StartedBy({ execution: { started_by: by } }: { execution: Execution }): ReactNode {
  if (by === undefined || by.kind === "execution") return null;
  if (by.kind === "rerun" && by.id !== null) {
    return (
      <>
        , a rerun of{" "}
        <Link to="/executions/$executionId" params={{ executionId: by.id }}>
          {by.id}
        </Link>
      </>
    );
  }
  const name = by.name ?? by.id;
  if (name === null) return null;
  if (by.kind === "user") {
    return (
      <>
        {" "}
        by <b>{name}</b>
      </>
    );
  }
  return (
    <>
      {" "}
      by {by.kind === "mcp" ? "an agent of" : by.kind} <b>{name}</b>
    </>
  );
}
