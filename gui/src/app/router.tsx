import {
  createRootRoute,
  createRoute,
  createRouter,
  parseSearchWith,
  stringifySearchWith,
} from "@tanstack/react-router";
import { ACCESS_TABS, type AccessTab } from "../access/tabs.ts";
import type { ApprovalView } from "../api/approvals.ts";
import { executionDetail, queries } from "../api/queries.ts";
import { PUBLIC_PATH } from "../api/session.ts";
import { STATS_SPANS, type StatsSpan } from "../api/stats.ts";
import type { TriggerItem } from "../api/triggers.ts";
import { ENTRY_TABS, type EntryTab } from "../catalog/entry/tabs.ts";
import { EXECUTION_TABS, type ExecutionTab } from "../execution/tabs.ts";
import { INBOX_VIEWS } from "../inbox/views.ts";
import { FIRE_STATES, readMonth } from "../triggers/fire-states.ts";
import { FaultPage, NoSuchPage } from "./fault.tsx";
import { lazyRouteComponent } from "./lazy-page.ts";
import { Shell } from "./shell.tsx";

/**
 * The pages. The address contains everything that a page shows, so that it can be sent to a colleague. The graph and the editor
 * are loaded when they are opened.
 */

/* A text that looks like a number or a truth value is read as one. */
const text = (value: unknown): string | undefined =>
  (typeof value === "string" && value !== "") || typeof value === "number" || typeof value === "boolean"
    ? String(value)
    : undefined;
const id = (value: unknown): string | undefined =>
  typeof value === "number" ? String(value) : typeof value === "string" && /^\d+$/.test(value) ? value : undefined;

const root = createRootRoute({
  component: Shell,
  errorComponent: FaultPage,
  notFoundComponent: NoSuchPage,
});

/** What a list of executions is narrowed to. */
interface ExecutionsSearch {
  status?: string | undefined;
  q?: string | undefined;
  path?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
  parent?: string | undefined;
  view?: "errors" | undefined;
  /** Executions that others called stand in the list themselves, or do not; by default they do where something is sought. */
  called?: "shown" | "under" | undefined;
}

/** What of an execution is looked at. */
interface ExecutionSearch {
  tab?: ExecutionTab | undefined;
  step?: string | undefined;
  event?: string | undefined;
  type?: string | undefined;
  /** The execution, among those that were called, whose step it is; absent: that of the page. */
  in?: string | undefined;
  /** An iteration of the step's loop. */
  iteration?: string | undefined;
  /** A command of the step; two runs of a task, by the events of their ends. */
  command?: string | undefined;
  run?: string | undefined;
  beside?: string | undefined;
  /** Another execution to compare with. */
  against?: string | undefined;
  /** The event after which it is looked at; absent: as it is now. */
  at?: string | undefined;
  /** Of the log: a worker, and a text. */
  worker?: string | undefined;
  /** Only what failed, of the log and of a step's attempts. */
  failed?: true | undefined;
  q?: string | undefined;
  /** The stretch of the timeline, milliseconds from the execution's start. */
  from?: string | undefined;
  until?: string | undefined;
}

const index = createRoute({
  getParentRoute: () => root,
  path: "/",
  validateSearch: (search: Record<string, unknown>): { span?: StatsSpan | undefined } => ({
    span: (Object.keys(STATS_SPANS) as StatsSpan[]).find((span) => span === search["span"]),
  }),
  component: lazyRouteComponent(() => import("../home/page.tsx"), "HomePage"),
});

const executions = createRoute({
  getParentRoute: () => root,
  path: "/executions",
  validateSearch: (search: Record<string, unknown>): ExecutionsSearch => ({
    status: text(search["status"]),
    q: text(search["q"]),
    path: text(search["path"]),
    since: text(search["since"]),
    until: text(search["until"]),
    parent: id(search["parent"]),
    view: search["view"] === "errors" ? "errors" : undefined,
    called: (["shown", "under"] as const).find((called) => called === search["called"]),
  }),
  component: lazyRouteComponent(() => import("../executions/page.tsx"), "ExecutionsPage"),
});

const bulk = createRoute({
  getParentRoute: () => root,
  path: "/executions/bulk/$bulkId",
  component: lazyRouteComponent(() => import("../executions/bulk/page.tsx"), "BulkPage"),
});

const execution = createRoute({
  getParentRoute: () => root,
  path: "/executions/$executionId",
  validateSearch: (search: Record<string, unknown>): ExecutionSearch => ({
    tab: EXECUTION_TABS.find((tab) => tab === search["tab"]),
    step: text(search["step"]),
    event: id(search["event"]),
    at: id(search["at"]),
    type: text(search["type"]),
    in: id(search["in"]),
    iteration: id(search["iteration"]),
    command: id(search["command"]),
    run: id(search["run"]),
    beside: id(search["beside"]),
    against: id(search["against"]),
    worker: text(search["worker"]),
    failed: search["failed"] === true ? true : undefined,
    q: text(search["q"]),
    from: id(search["from"]),
    until: id(search["until"]),
  }),
  // It is read while the code of the page is loaded; not when a pointer only rests on a link.
  loader: ({ params, preload }) => {
    if (!preload) void queries.prefetchQuery(executionDetail(params.executionId));
  },
  // Another view of the same execution needs nothing anew.
  shouldReload: false,
  component: lazyRouteComponent(() => import("../execution/page/page.tsx"), "ExecutionPage"),
});

/** What the catalog is narrowed to. */
interface CatalogSearch {
  kind?: "playbook" | "agent" | "mcp" | "trigger" | undefined;
  prefix?: string | undefined;
  q?: string | undefined;
}

/** Which version of an entry is looked at, and how. */
interface EntrySearch {
  tab?: EntryTab | undefined;
  version?: string | undefined;
  against?: string | undefined;
  /** The execution whose inputs the form begins with. */
  from?: string | undefined;
}

const catalog = createRoute({
  getParentRoute: () => root,
  path: "/catalog",
  validateSearch: (search: Record<string, unknown>): CatalogSearch => ({
    kind: (["playbook", "agent", "mcp", "trigger"] as const).find((kind) => kind === search["kind"]),
    prefix: text(search["prefix"]),
    q: text(search["q"]),
  }),
  component: lazyRouteComponent(() => import("../catalog/page.tsx"), "CatalogPage"),
});

interface RegisterSearch {
  from?: string | undefined;
  draft?: string | undefined;
  step?: string | undefined;
  of?: string | undefined;
}

const register = createRoute({
  getParentRoute: () => root,
  path: "/register",
  // The newest version of a path, or a draft by its catalog id; else a new document.
  // A step and an execution that it ran in: it is to be tested.
  validateSearch: (search: Record<string, unknown>): RegisterSearch => ({
    from: text(search["from"]),
    draft: id(search["draft"]),
    step: text(search["step"]),
    of: id(search["of"]),
  }),
  component: lazyRouteComponent(() => import("../catalog/register/page.tsx"), "RegisterPage"),
});

const entry = createRoute({
  getParentRoute: () => root,
  path: "/entry/$",
  validateSearch: (search: Record<string, unknown>): EntrySearch => ({
    tab: ENTRY_TABS.find((tab) => tab === search["tab"]),
    version: id(search["version"]),
    against: id(search["against"]),
    from: id(search["from"]),
  }),
  component: lazyRouteComponent(() => import("../catalog/entry/page.tsx"), "EntryPage"),
});

/** Which approvals are looked at. */
interface InboxSearch {
  view?: ApprovalView | undefined;
  /** The chosen one. */
  approval?: string | undefined;
}

const inbox = createRoute({
  getParentRoute: () => root,
  path: "/inbox",
  validateSearch: (search: Record<string, unknown>): InboxSearch => ({
    view: (Object.keys(INBOX_VIEWS) as ApprovalView[]).find((view) => view === search["view"]),
    approval: id(search["approval"]),
  }),
  component: lazyRouteComponent(() => import("../inbox/page.tsx"), "InboxPage"),
});

const TRIGGER_KINDS = ["schedule", "webhook", "execution", "nats", "signal"] as const satisfies TriggerItem["kind"][];

const triggers = createRoute({
  getParentRoute: () => root,
  path: "/triggers",
  validateSearch: (
    search: Record<string, unknown>,
  ): { kind?: TriggerItem["kind"] | undefined; q?: string | undefined } => ({
    kind: TRIGGER_KINDS.find((kind) => kind === search["kind"]),
    q: text(search["q"]),
  }),
  component: lazyRouteComponent(() => import("../triggers/page.tsx"), "TriggersPage"),
});

/** What of a trigger is looked at: a month, and fires that came to the same. */
interface TriggerSearch {
  month?: string | undefined;
  status?: (typeof FIRE_STATES)[number] | undefined;
}

const trigger = createRoute({
  getParentRoute: () => root,
  path: "/triggers/$triggerId",
  validateSearch: (search: Record<string, unknown>): TriggerSearch => ({
    month: readMonth(search["month"]),
    status: FIRE_STATES.find((status) => status === search["status"]),
  }),
  component: lazyRouteComponent(() => import("../triggers/trigger.tsx"), "TriggerPage"),
});

const operations = createRoute({
  getParentRoute: () => root,
  path: "/operations",
  component: lazyRouteComponent(() => import("../operations/page.tsx"), "OperationsPage"),
});

/** Which credentials are looked at. */
interface CredentialSearch {
  q?: string | undefined;
  type?: string | undefined;
  tag?: string | undefined;
  /** The selected one. */
  name?: string | undefined;
  /** What is done: a new one is made, or the one of that name replaced. */
  form?: "new" | "replace" | undefined;
}

const credentials = createRoute({
  getParentRoute: () => root,
  path: "/credentials",
  validateSearch: (search: Record<string, unknown>): CredentialSearch => ({
    q: text(search["q"]),
    type: text(search["type"]),
    tag: text(search["tag"]),
    name: text(search["name"]),
    form: (["new", "replace"] as const).find((form) => form === search["form"]),
  }),
  component: lazyRouteComponent(() => import("../credentials/page.tsx"), "CredentialsPage"),
});

/** What of the terminal is looked at. */
interface AgentsSearch {
  agent?: string | undefined;
  server?: string | undefined;
  tool?: string | undefined;
}

const agents = createRoute({
  getParentRoute: () => root,
  path: "/agents",
  validateSearch: (search: Record<string, unknown>): AgentsSearch => ({
    agent: text(search["agent"]),
    server: text(search["server"]),
    tool: text(search["tool"]),
  }),
  component: lazyRouteComponent(() => import("../agents/page.tsx"), "AgentsPage"),
});

/** The selected user, role, or entries of the audit log. */
export interface AccessSearch {
  tab?: AccessTab | undefined;
  q?: string | undefined;
  user?: string | undefined;
  role?: string | undefined;
  actor?: string | undefined;
  action?: string | undefined;
  resource?: string | undefined;
  result?: "allow" | "deny" | "error" | undefined;
  since?: string | undefined;
  until?: string | undefined;
}

const access = createRoute({
  getParentRoute: () => root,
  path: "/access",
  validateSearch: (search: Record<string, unknown>): AccessSearch => ({
    tab: ACCESS_TABS.find((tab) => tab === search["tab"]),
    q: text(search["q"]),
    user: id(search["user"]),
    role: text(search["role"]),
    actor: text(search["actor"]),
    action: text(search["action"]),
    resource: text(search["resource"]),
    result: (["allow", "deny", "error"] as const).find((result) => result === search["result"]),
    since: text(search["since"]),
    until: text(search["until"]),
  }),
  component: lazyRouteComponent(() => import("../access/page.tsx"), "AccessPage"),
});

const login = createRoute({
  getParentRoute: () => root,
  path: "/login",
  validateSearch: (search: Record<string, unknown>): { to?: string | undefined } => ({ to: text(search["to"]) }),
  component: lazyRouteComponent(() => import("../login/page.tsx"), "LoginPage"),
});

/** Made once; components find it by its type. */
export const router = createRouter({
  routeTree: root.addChildren([
    index,
    executions,
    bulk,
    execution,
    catalog,
    register,
    entry,
    triggers,
    trigger,
    inbox,
    agents,
    operations,
    credentials,
    access,
    login,
  ]),
  basepath: PUBLIC_PATH === "" ? "/" : PUBLIC_PATH,
  // Texts as they are, and no JSON: an address is read and written by people too.
  parseSearch: parseSearchWith(String),
  stringifySearch: stringifySearchWith(String),
  // Inside the shell: a user can leave a page that fails.
  defaultErrorComponent: FaultPage,
  defaultNotFoundComponent: NoSuchPage,
  defaultPreload: "intent",
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
