import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { JsonView } from "../parts/json/view.tsx";
import { useNow } from "../parts/now.tsx";
import { Status } from "../parts/status.tsx";
import { durationText } from "../parts/time.ts";
import type { AgentCall, CallProgress } from "./call-agent.ts";
import { contentOf } from "./mcp-tools.ts";
import { Messages } from "./messages.tsx";
import { Picture } from "./picture.tsx";

/** A call that no worker claims for this long is reported as waiting, milliseconds. */
const UNTAKEN_MS = 5_000;

/** A call that is under way: how far it is, and the way to end it. */
export function Running({
  progress,
  isCancelling,
  onCancel,
}: {
  progress: (CallProgress & { since: number }) | undefined;
  isCancelling: boolean;
  onCancel(executionId: string): void;
}): ReactNode {
  const now = useNow();
  if (progress === undefined) return <p role="status">Starting …</p>;
  const waited = Math.max(0, now - progress.since);
  return (
    <section className="stack tight">
      <p className="row" role="status">
        <Status of={progress.isTaken ? "RUNNING" : "PENDING"} />
        <span className="wrap">{progress.isTaken ? progress.text : "waits for a worker"}</span>
      </p>
      <p className="row">
        <span className="number quiet">{durationText(waited)}</span>
        <ExecutionLink executionId={progress.executionId} />
        <button type="button" disabled={isCancelling} onClick={() => onCancel(progress.executionId)}>
          {isCancelling ? "Cancelling …" : "Cancel the call"}
        </button>
      </p>
      {!progress.isTaken && waited > UNTAKEN_MS && (
        <p className="tone-warn problem">
          No worker has taken it yet. <Link to="/operations">Operations</Link> says which workers there are and what
          keeps them.
        </p>
      )}
    </section>
  );
}

/** How a call ended, what the tool said, and the whole answer. */
export function Outcome({
  call,
  request,
  isBrief,
}: {
  call: AgentCall;
  /** What was sent, without secrets. */
  request: JsonObject;
  /** The result is shown elsewhere. */
  isBrief: boolean;
}): ReactNode {
  const content = contentOf(call.result);
  return (
    <section className="stack" aria-live="polite" aria-label="Answer">
      <p className="row">
        <Status of={call.status} />
        {call.took !== null && <span className="number quiet">{durationText(call.took)}</span>}
        <ExecutionLink executionId={call.executionId} />
      </p>
      {call.error !== null && (
        <div className="panel tone-bad">
          <p className="wrap">{call.error.message}</p>
          <p className="quiet">
            <code>{call.error.code}</code> {hintOf(call.error.code)}
          </p>
        </div>
      )}
      {content?.isError === true && <p className="problem">The tool says that it failed.</p>}
      {content?.pieces.map((piece, index) => {
        // Pieces have no names, and their order does not change.
        const key = `${call.executionId} ${index}`;
        return piece.picture === undefined ? (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keys
          <pre key={key} className="piece" tabIndex={0}>
            {piece.text}
          </pre>
        ) : (
          <Picture key={key} {...piece.picture} />
        );
      })}
      {!(isBrief && call.status === "COMPLETED") && (call.error === null || call.result != null) && (
        <JsonView
          key={call.executionId}
          label={content === undefined ? "Result" : "Whole answer"}
          value={call.result ?? null}
        />
      )}
      {call.messages.length > 0 && <Messages key={call.executionId} messages={call.messages} />}
      <details>
        <summary className="quiet">Request</summary>
        <JsonView key={call.executionId} label="Request" value={request} />
      </details>
    </section>
  );
}

function ExecutionLink({ executionId }: { executionId: string }): ReactNode {
  return (
    <Link to="/executions/$executionId" params={{ executionId }}>
      Execution {executionId}
    </Link>
  );
}

function hintOf(code: string): string {
  if (/^(ECONN|ENOTFOUND|EAI|CONNECT|NETWORK|UND_ERR)/.test(code)) {
    return "The server cannot be reached. Is it deployed, and can the workers reach its address?";
  }
  if (code === "HTTP_401" || code === "HTTP_403") return "The server refused: see the credential of its document.";
  if (code === "NOT_FOUND") return "Something that the call names is not registered.";
  return "";
}
