import type { Context } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { createRateLimit } from "../../platform/concurrency/rate-limit.ts";
import { DecideBody, LINK_BODY_BYTES_MAX, type LinkAnswer } from "../../schema/api/waits/approvals.ts";
import { APPROVAL_LINK_ROUTES } from "../../schema/routes/steering.ts";
import { defined } from "../../schema/words/defined.ts";
import { ERROR_STATUS, FlowError } from "../../schema/words/errors.ts";
import type { Access } from "../../services/access/access.ts";
import { type Audit, audited, type Caller } from "../../services/access/audit.ts";
import type { Approvals, LinkedApproval, Person, Saying } from "../../services/approvals/approvals.ts";
import { callerOf } from "../http/audit-caller.ts";
import { maskedJson } from "../http/masked-json.ts";
import { parseJson, readBody } from "../http/read-body.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { serve } from "../http/serve.ts";
import { check } from "../http/validate.ts";
import type { WrongTokens } from "../http/wrong-tokens.ts";
import { formData } from "./link-form.ts";
import { askingPage, PAGE_HEADERS, tellingPage } from "./link-page.ts";

/** What {@link approvalLinkRoutes} needs. */
export interface ApprovalLinkDeps {
  approvals: Pick<Approvals, "look" | "decideByLink">;
  access: Pick<Access, "session">;
  audit: Pick<Audit, "record" | "noted" | "refused" | "unauthenticated">;
  wrongTokens: WrongTokens;
}

/** Calls of one link within a minute: those of a person, and of what looks at their mail. */
export const LINK_PER_MINUTE = 60;
/** Links that are counted. */
const LINKS_MAX = 10_000;

/** The links of messages about approvals (control, rule 30), for browsers and for programs. */
export function approvalLinkRoutes(deps: ApprovalLinkDeps) {
  const limit = createRateLimit({
    ...{ uses: LINK_PER_MINUTE, withinMs: 60_000, keysMax: LINKS_MAX },
    now: () => performance.now(),
  });
  /** What the link of a call leads to. */
  const open = async (c: Context<RouteEnvironment>, token: string, action: string) => {
    const person = await personOf(c, deps.access);
    try {
      const linked = await deps.approvals.look(token, person);
      const waitMs = limit(`${linked.link.approvalId}/${linked.link.number}`);
      if (waitMs > 0) throw tooMany(waitMs);
      const caller = { ...callerOfLink(c, person), executionId: linked.row.executionId };
      if (linked.over === undefined) return { linked, person, caller };
      deps.audit.refused(audited(caller, action, resourceOf(linked), { result: "deny" }));
      throw linked.over;
    } catch (error) {
      if (isCode(error, "NOT_FOUND")) await refuseUnknown(c, deps);
      if (isCode(error, "FORBIDDEN", "UNAUTHENTICATED"))
        deps.audit.refused(audited(callerOfLink(c, person), LOOK, "approval", { result: "deny" }));
      throw error;
    }
  };
  return serve(APPROVAL_LINK_ROUTES, {
    look: async ({ params }, c) =>
      await answering(c, wantsPage(c), async () => {
        const { linked, caller } = await open(c, params.token, LOOK);
        deps.audit.noted(audited(caller, LOOK, resourceOf(linked), { detail: { link: linked.link.number } }));
        return wantsPage(c) ? pageOf(c, askingPage(linked)) : maskedJson(c, answerOf(linked));
      }),
    decide: {
      readsBody: async ({ params, json }, c) => {
        const isForm = /^application\/x-www-form-urlencoded\b/i.test(c.req.header("content-type") ?? "");
        return await answering(c, isForm, async () => {
          // Before the body is read: who has no link sends nothing.
          const { linked, person, caller } = await open(c, params.token, DECIDE);
          const bytes = await readBody(c.req.raw, LINK_BODY_BYTES_MAX);
          const given = isForm ? new URLSearchParams(bytes.toString("utf8")) : undefined;
          try {
            const saying = given === undefined ? sayingOf(parseJson(bytes)) : sentByForm(linked, given);
            const status = await deps.approvals.decideByLink(linked, saying, person);
            const detail = { decision: saying.decision, status, link: linked.link.number };
            await deps.audit.record(audited(caller, DECIDE, resourceOf(linked), { detail }));
            if (!isForm) return json({ status: status as "open" | "approved" | "rejected" });
            return pageOf(c, tellingPage(linked.row.title, TOLD[saying.decision]));
          } catch (error) {
            if (isCode(error, "CONFLICT", "GONE"))
              deps.audit.refused(audited(caller, DECIDE, resourceOf(linked), { result: "deny" }));
            if (given === undefined || !isCode(error, "INVALID_INPUT")) throw error;
            return pageOf(c, askingPage(linked, { given, problem: (error as FlowError).message }), 422);
          }
        });
      },
    },
  });
}

const LOOK = "approval.view";
const DECIDE = "approval.decide";
const TOLD = {
  approve: "Your approval is recorded. Thank you.",
  reject: "Your rejection is recorded. Thank you.",
} as const;

/** Answers with a page also where it is refused, if a browser asks. */
async function answering(
  c: Context<RouteEnvironment>,
  isPage: boolean,
  answer: () => Promise<Response>,
): Promise<Response> {
  c.header("cache-control", "no-store");
  try {
    return await answer();
  } catch (error) {
    if (!isPage || !(error instanceof FlowError) || ERROR_STATUS[error.code] >= 500) throw error;
    return pageOf(
      c,
      tellingPage(error.code === "GONE" ? "This link is over" : "This does not work", error.message),
      ERROR_STATUS[error.code] as ContentfulStatusCode,
    );
  }
}

function pageOf(c: Context<RouteEnvironment>, page: string, status: ContentfulStatusCode = 200): Response {
  return c.body(page, status, PAGE_HEADERS);
}

/** Browsers name HTML; programs that want JSON say so. */
function wantsPage(c: Context<RouteEnvironment>): boolean {
  const accept = c.req.header("accept") ?? "";
  return !accept.includes("application/json") || accept.includes("text/html");
}

/** Who is logged in: a session that a gateway names, or an operator's token. */
async function personOf(c: Context<RouteEnvironment>, access: Pick<Access, "session">): Promise<Person | undefined> {
  if (c.get("role") !== "operator") return undefined;
  const session = c.req.header("x-flow-session");
  if (session === undefined) return { by: "operator", user: undefined };
  const user = /^[0-9a-f]{64}$/.test(session) ? await access.session(session) : undefined;
  return user === undefined ? undefined : { by: user.email, user };
}

function callerOfLink(c: Context<RouteEnvironment>, person: Person | undefined): Caller {
  const { requestId, address } = callerOf(c, { access: "anonymous" });
  const user = person?.user;
  return {
    ...{ actorKind: user === undefined ? "anonymous" : "user", rule: "link" },
    ...(user !== undefined && { actor: user.email, userId: String(user.userId) }),
    ...defined({ requestId, address }),
  };
}

/** A link that was never given out: guesses from one address are one row of the audit log, and become slow. */
async function refuseUnknown(
  c: Context<RouteEnvironment>,
  { audit, wrongTokens }: Pick<ApprovalLinkDeps, "audit" | "wrongTokens">,
): Promise<void> {
  const caller = { ...callerOfLink(c, undefined), rule: "unknown link" };
  audit.unauthenticated(audited(caller, "authenticate", "approval", { result: "deny", detail: { first: LOOK } }));
  await wrongTokens.hold(c);
}

function resourceOf({ link }: LinkedApproval): string {
  return `approval/${link.approvalId}`;
}

function sayingOf(body: unknown): Saying {
  const { decision, data, comment } = check(DecideBody, body, "The body");
  return { decision, ...defined({ data, comment }) };
}

function sentByForm({ row: { form } }: LinkedApproval, given: URLSearchParams): Saying {
  const comment = given.get("comment")?.replaceAll("\r\n", "\n").trim() ?? "";
  const data = form === null ? undefined : formData(form, given);
  const body = { decision: given.get("decision") ?? "", ...defined({ data }), ...(comment !== "" && { comment }) };
  return sayingOf(body);
}

function answerOf({ row }: LinkedApproval): LinkAnswer {
  const { title, description, form, status, dueAt } = row;
  return {
    ...{ title, status, link: "open" as const },
    ...defined({ description: description ?? undefined, form: form ?? undefined, due: dueAt?.toISOString() }),
  };
}

function isCode(error: unknown, ...codes: readonly FlowError["code"][]): boolean {
  return error instanceof FlowError && codes.includes(error.code);
}

function tooMany(waitMs: number): FlowError {
  const seconds = Math.ceil(waitMs / 1_000);
  const message = `This link was called too often. Try again in ${seconds} s`;
  return new FlowError("RATE_LIMITED", message, { detail: { retry_after_seconds: seconds } });
}
