import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from "@tanstack/react-router";
import { ProblemPanel } from "../parts/problem.tsx";
import { Shell } from "./shell.tsx";

/*
 * The pages. Everything that a page shows stands in its address, so that an address can be sent to somebody. What needs the
 * graph or the editor is loaded when it is opened.
 */

const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);
const id = (value: unknown): string | undefined =>
  typeof value === "number" ? String(value) : typeof value === "string" && /^\d+$/.test(value) ? value : undefined;

const root = createRootRoute({
  component: Shell,
  errorComponent: ({ error, reset }) => <ProblemPanel error={error} again={reset} />,
  notFoundComponent: () => <ProblemPanel error={new Error("No page has this address.")} />,
});

/** What a list of executions is narrowed to. */
interface ExecutionsSearch {
  status?: string | undefined;
  path?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
  parent?: string | undefined;
  view?: "errors" | undefined;
}

/** What of an execution is looked at. */
interface ExecutionSearch {
  tab?: ExecutionTab | undefined;
  step?: string | undefined;
  event?: string | undefined;
  type?: string | undefined;
  /** A command of the step; two runs of a task, by the events of their ends. */
  command?: string | undefined;
  run?: string | undefined;
  beside?: string | undefined;
  /** Another execution to compare with. */
  against?: string | undefined;
  /** Only what it called that is in this state. */
  state?: string | undefined;
  worker?: string | undefined;
  failed?: true | undefined;
  q?: string | undefined;
  /** The stretch of the timeline, milliseconds from the execution's start. */
  from?: string | undefined;
  until?: string | undefined;
}

const index = createRoute({
  getParentRoute: () => root,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/executions" });
  },
});

const executions = createRoute({
  getParentRoute: () => root,
  path: "/executions",
  validateSearch: (search: Record<string, unknown>): ExecutionsSearch => ({
    status: text(search["status"]),
    path: text(search["path"]),
    since: text(search["since"]),
    until: text(search["until"]),
    parent: id(search["parent"]),
    view: search["view"] === "errors" ? "errors" : undefined,
  }),
  component: lazyRouteComponent(() => import("../executions/page.tsx"), "ExecutionsPage"),
});

/** What one execution's page can show beneath the answer. */
export const EXECUTION_TABS = ["steps", "graph", "timeline", "events", "data", "children", "compare"] as const;
export type ExecutionTab = (typeof EXECUTION_TABS)[number];

const execution = createRoute({
  getParentRoute: () => root,
  path: "/executions/$executionId",
  validateSearch: (search: Record<string, unknown>): ExecutionSearch => ({
    tab: EXECUTION_TABS.find((tab) => tab === search["tab"]),
    step: text(search["step"]),
    event: id(search["event"]),
    type: text(search["type"]),
    command: id(search["command"]),
    run: id(search["run"]),
    beside: id(search["beside"]),
    against: id(search["against"]),
    state: text(search["state"]),
    worker: text(search["worker"]),
    failed: search["failed"] === true ? true : undefined,
    q: text(search["q"]),
    from: id(search["from"]),
    until: id(search["until"]),
  }),
  component: lazyRouteComponent(() => import("../execution/page.tsx"), "ExecutionPage"),
});

/** What a catalog entry's page can show. */
export const ENTRY_TABS = ["run", "document", "graph", "versions", "executions"] as const;
export type EntryTab = (typeof ENTRY_TABS)[number];

/** What the catalog is narrowed to. */
interface CatalogSearch {
  kind?: "playbook" | "agent" | "mcp" | undefined;
  prefix?: string | undefined;
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
    kind: (["playbook", "agent", "mcp"] as const).find((kind) => kind === search["kind"]),
    prefix: text(search["prefix"]),
  }),
  component: lazyRouteComponent(() => import("../catalog/page.tsx"), "CatalogPage"),
});

const register = createRoute({
  getParentRoute: () => root,
  path: "/register",
  validateSearch: (search: Record<string, unknown>): { from?: string | undefined } => ({ from: text(search["from"]) }),
  component: lazyRouteComponent(() => import("../catalog/register-page.tsx"), "RegisterPage"),
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
  component: lazyRouteComponent(() => import("../catalog/entry-page.tsx"), "EntryPage"),
});

const operations = createRoute({
  getParentRoute: () => root,
  path: "/operations",
  component: lazyRouteComponent(() => import("../operations/page.tsx"), "OperationsPage"),
});

/** Which credentials are looked at. */
interface CredentialSearch {
  q?: string | undefined;
}

const credentials = createRoute({
  getParentRoute: () => root,
  path: "/credentials",
  validateSearch: (search: Record<string, unknown>): CredentialSearch => ({
    q: text(search["q"]),
  }),
  component: lazyRouteComponent(() => import("../credentials/page.tsx"), "CredentialsPage"),
});

const agents = createRoute({
  getParentRoute: () => root,
  path: "/agents",
  validateSearch: (search: Record<string, unknown>): { agent?: string | undefined; server?: string | undefined } => ({
    agent: text(search["agent"]),
    server: text(search["server"]),
  }),
  component: lazyRouteComponent(() => import("../agents/page.tsx"), "AgentsPage"),
});

/** What can be seen of access. */
export const ACCESS_TABS = ["users", "roles", "audit"] as const;
export type AccessTab = (typeof ACCESS_TABS)[number];

const access = createRoute({
  getParentRoute: () => root,
  path: "/access",
  validateSearch: (search: Record<string, unknown>): { tab?: AccessTab | undefined } => ({
    tab: ACCESS_TABS.find((tab) => tab === search["tab"]),
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
    execution,
    catalog,
    register,
    entry,
    agents,
    operations,
    credentials,
    access,
    login,
  ]),
  defaultPreload: "intent",
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
