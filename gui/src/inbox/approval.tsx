import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ArrowLeft } from "lucide-react";
import type { ReactNode } from "react";
import { type Approval, approvalDetail } from "../api/approvals.ts";
import { Ago } from "../parts/now.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { Status } from "../parts/status.tsx";
import { Decide, useDecide } from "./decide.tsx";
import { ApprovalHistory } from "./history.tsx";
import { Markdown } from "./markdown.tsx";

/** One approval: what is asked, the form to decide, and what has happened so far. */
export function ApprovalDetail({ approvalId }: { approvalId: string }): ReactNode {
  const { data, error, refetch } = useQuery(approvalDetail(approvalId));
  return (
    <div className="stack shown">
      <Link from="/inbox" to="." search={(before) => ({ ...before, approval: undefined })} className="back">
        <ArrowLeft className="icon" aria-hidden="true" />
        All approvals
      </Link>
      {error !== null && data === undefined && <ProblemPanel error={error} again={() => void refetch()} />}
      {data === undefined && error === null && <p className="quiet">Loading …</p>}
      {data !== undefined && <Shown approval={data} />}
    </div>
  );
}

function Shown({ approval }: { approval: Approval }): ReactNode {
  const { title, description, status, may_decide: mayDecide, form } = approval;
  // Kept here: what was refused because others had decided is told when the form is gone.
  const decide = useDecide(approval);
  return (
    <>
      <section className="card" data-part="approval">
        <header>
          <h2 className="wrap">{title}</h2>
          <span className="aside">
            <Status of={status} />
          </span>
        </header>
        <div className="pad stack">
          {description !== undefined && <Markdown text={description} />}
          <Facts approval={approval} />
        </div>
        {status === "open" && (
          <div className="pad decide">
            {mayDecide ? (
              <Decide form={form} decide={decide} />
            ) : (
              <p className="quiet">
                You have decided already, or are not among those who decide. It stays open until enough people have.
              </p>
            )}
          </div>
        )}
        {decide.isError && (
          <p role="alert" className="pad problem wrap">
            {decide.error.message}
          </p>
        )}
      </section>
      <ApprovalHistory approval={approval} />
    </>
  );
}

function Facts({ approval }: { approval: Approval }): ReactNode {
  const { path, execution_id: executionId, step, iteration, opened_at: openedAt, due } = approval;
  return (
    <dl className="facts">
      <dt>Playbook</dt>
      <dd>
        <Link to="/entry/$" params={{ _splat: path }}>
          {path}
        </Link>
      </dd>
      <dt>Asked by</dt>
      <dd>
        step{" "}
        <Link to="/executions/$executionId" params={{ executionId }} search={{ step }}>
          {step}
        </Link>
        {iteration !== undefined && `, item ${iteration}`} of execution{" "}
        <Link to="/executions/$executionId" params={{ executionId }} className="mono">
          {executionId}
        </Link>
        , <Ago at={openedAt} />
      </dd>
      {due !== undefined && (
        <>
          <dt>Expires</dt>
          <dd>
            <Ago at={due} />
          </dd>
        </>
      )}
      <dt>Who decides</dt>
      <dd>{whoText(approval)}</dd>
      <dt>Takes</dt>
      <dd>{takesText(approval)}</dd>
    </dl>
  );
}

/** `the role release_manager, ann@example.com; not who started the run`. */
function whoText({ approvers: { roles, users, not_starter: notStarter, who_may_execute: byPath } }: Approval): string {
  const named = [
    ...(byPath ? ["anyone who may run the playbook"] : []),
    ...(roles.length > 0 ? [`${roles.length === 1 ? "the role" : "the roles"} ${roles.join(", ")}`] : []),
    ...users,
  ];
  return `${named.join(", ") || "operators alone"}${notStarter ? "; not the person who started the run" : ""}`;
}

/** `2 approvals, 1 so far; 1 rejection ends it`. */
function takesText({ required, rejections, decisions }: Approval): string {
  const count = (decision: "approve" | "reject") => decisions.filter((one) => one.decision === decision).length;
  const soFar = (found: number) => (found === 0 ? "" : `, ${found} so far`);
  return [
    `${required} ${required === 1 ? "approval" : "approvals"}${soFar(count("approve"))}`,
    `${rejections} ${rejections === 1 ? "rejection ends" : "rejections end"} it${soFar(count("reject"))}`,
  ].join("; ");
}
