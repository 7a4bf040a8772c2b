import type { Context } from "hono";
import { formatTraceparent, parseTraceparent } from "../../platform/telemetry/trace-context.ts";
import { DraftBody, DraftStepBody } from "../../schema/api/catalog.ts";
import { DRAFT_ROUTES } from "../../schema/routes/executions.ts";
import { defined } from "../../schema/words/defined.ts";
import { audited } from "../../services/access/audit.ts";
import type { Drafts } from "../../services/drafts/drafts.ts";
import type { Draft } from "../../services/drafts/start-draft.ts";
import { callerOf, documentCaller } from "../http/audit-caller.ts";
import { bodySha256, idempotencyKey, keyOwner } from "../http/idempotency.ts";
import { BODY_BYTES_MAX, parseJson, readBody } from "../http/read-body.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { type RouteHandler, serve } from "../http/serve.ts";
import { check } from "../http/validate.ts";
import { startedAnswer } from "./execute.ts";
import { rerunAnswer } from "./rerun-request.ts";

type Call = Context<RouteEnvironment>;

/** Texts that run without being registered, and what a start would begin with. */
export function draftRoutes(drafts: Drafts) {
  return serve(DRAFT_ROUTES, {
    run: runDraft(drafts),
    step: testStep(drafts),
    preview: previewStart(drafts),
  });
}

/** Runs a text that is not registered. */
function runDraft(drafts: Pick<Drafts, "start">): RouteHandler<typeof DRAFT_ROUTES.run> {
  return {
    readsBody: async ({ maskedJson }, c) => {
      const bytes = await readBody(c.req.raw, BODY_BYTES_MAX);
      const { content, workload = {}, labels, target } = check(DraftBody, parseJson(bytes), "The body");
      const started = await drafts.start({
        ...draftOf(c, content),
        ...startOf(c, bytes),
        input: workload,
        log: c.var.decisions,
        ...defined({ labels, target }),
      });
      await c.var.decisions.settle({ executionId: started.executionId });
      return maskedJson(startedAnswer(started));
    },
  };
}

/** Runs a step of such a text with recorded inputs, or answers the plan. Its row of the audit log is written with the new execution. */
function testStep(drafts: Pick<Drafts, "testStep">): RouteHandler<typeof DRAFT_ROUTES.step> {
  return {
    readsBody: async ({ json }, c) => {
      const bytes = await readBody(c.req.raw, BODY_BYTES_MAX);
      const body = check(DraftStepBody, parseJson(bytes), "The body");
      const { content, step, dry_run: dryRun = false } = body;
      const caller = callerOf(c, { access: "operator" });
      const trace = parseTraceparent(c.req.header("traceparent"));
      const test = await drafts.testStep({
        ...draftOf(c, content),
        ...startOf(c, bytes),
        ...{ step, dryRun, by: caller.actor ?? caller.actorKind, log: c.var.decisions },
        permitRerun: (path) => c.var.permit("execute", path),
        row: (of, executionId) =>
          audited(caller, "execution.test_step", `execution/${of}`, { detail: { execution_id: executionId, step } }),
        ...(trace !== undefined && { traceparent: formatTraceparent(trace) }),
        ...defined({ executionId: body.execution_id }),
      });
      const { executionId } = test;
      await c.var.decisions.settle(defined({ executionId }));
      return json(rerunAnswer(test.of, test), executionId === undefined ? 200 : 202);
    },
  };
}

/** Answers what a start would begin with: of a registered path, or of a text. */
function previewStart(drafts: Pick<Drafts, "preview">): RouteHandler<typeof DRAFT_ROUTES.preview> {
  return async ({ body, maskedJson }, c) => {
    const { path, version, content, workload: input = {} } = body;
    const permit = (entryPath: string) => c.var.permit("view", entryPath);
    const what =
      content === undefined
        ? { path: path ?? "", permit, ...defined({ version }) }
        : { ...draftOf(c, content), permit: (entryPath: string) => permitUnwritten(c, entryPath) };
    const preview = await drafts.preview({ input, ...what });
    await c.var.decisions.settle();
    return maskedJson(preview);
  };
}

/** As for running a text, whose templates may read as much; what is allowed is no line of the audit log, as nothing is changed or run. */
async function permitUnwritten(c: Call, path: string): Promise<void> {
  await c.var.permit("view", path);
  for (const action of ["modify", "execute"] as const) {
    if (!c.var.may(action, path)) await c.var.permit(action, path);
  }
}

/** A text, and who has it run: a caller who may register it under its path, and start it there. */
function draftOf(c: Call, content: string): Draft {
  return {
    content,
    caller: documentCaller(c, content),
    permit: async (path) => {
      await c.var.permit("modify", path);
      await c.var.permit("execute", path);
    },
  };
}

/** What a start needs to know of its request. */
function startOf(c: Call, bytes: Uint8Array) {
  const key = idempotencyKey(c);
  const { user } = c.var;
  return {
    bytes: bytes.length,
    may: (path: string) => c.var.may("execute", path),
    ...(user !== undefined && { startedBy: user.userId }),
    ...(key !== null && { idempotency: { caller: keyOwner(c), key, bodySha256: bodySha256(bytes) } }),
  };
}
