import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useLocation, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { api } from "../api/client.ts";
import { catalogList } from "../api/queries.ts";
import type { Execution } from "../api/types.ts";
import { useSections } from "../parts/allowed.ts";
import { agoText } from "../parts/time.ts";
import { chooseRail, chooseScheme, chosenRail } from "./scheme.ts";

/** In the order in which they are listed. */
const GROUPS = ["This page", "Executions", "Steps", "Playbooks", "Go to", "Do"] as const;

/** One thing that the palette can do. */
export interface Command {
  key: string;
  group: (typeof GROUPS)[number];
  name: string;
  /** Beside the name. */
  detail?: string;
  /** Further words by which it is found. */
  words?: string;
  act(): void;
}

/** What is offered of each group, at most. */
const GROUP_MAX = 10;

/** What matches a text, best first in each group; everything that one does often for an empty text. */
export function useCommands(text: string, onKeys: () => void): { commands: readonly Command[]; isLooking: boolean } {
  const fixed = useFixed(onKeys);
  const ofPage = useOfPage();
  const playbooks = usePlaybooks(text);
  const { executions, isLooking } = useExecutions(text);
  const commands = useMemo(() => {
    // What the server found is found already.
    const found = [...[...ofPage, ...playbooks, ...fixed].filter((command) => matches(command, text)), ...executions];
    return GROUPS.flatMap((group) => found.filter((command) => command.group === group).slice(0, GROUP_MAX));
  }, [ofPage, playbooks, fixed, executions, text]);
  return { commands, isLooking };
}

function matches({ name, detail = "", words = "" }: Command, text: string): boolean {
  const found = `${name} ${detail} ${words}`.toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => found.includes(word));
}

/** Pages and what can be done anywhere. */
function useFixed(onKeys: () => void): readonly Command[] {
  const navigate = useNavigate();
  const sections = useSections();
  return useMemo(() => {
    const page = (name: string, to: string, words = ""): Command => ({
      key: `to ${to}`,
      group: "Go to",
      name,
      words: `go open page ${words}`,
      act: () => void navigate({ href: to }),
    });
    const deed = (name: string, words: string, act: () => void): Command => ({
      key: name,
      group: "Do",
      name,
      words,
      act,
    });
    return [
      page("Home", "/", "start overview statistics"),
      page("Executions", "/executions", "runs"),
      page("Failed executions", "/executions?status=FAILED", "errors"),
      page("Errors in groups", "/executions?view=errors", "failed"),
      page("Playbooks", "/catalog", "catalog"),
      page("Triggers", "/triggers", "schedules webhooks cron signals"),
      page("Inbox", "/inbox", "approvals approve reject decide"),
      page("Agents", "/agents", "mcp terminal"),
      ...(sections.operations ? [page("Workers & queues", "/operations", "operations health doctor")] : []),
      ...(sections.credentials ? [page("Credentials", "/credentials", "secrets keys")] : []),
      ...(sections.access ? [page("Access", "/access", "users roles audit")] : []),
      deed("Register a document …", "new playbook add yaml", () => void navigate({ to: "/register" })),
      deed("Use light colours", "theme scheme", () => chooseScheme("light")),
      deed("Use dark colours", "theme scheme", () => chooseScheme("dark")),
      deed("Use the system's colours", "theme scheme", () => chooseScheme("system")),
      deed("Collapse or widen the menu", "rail sidebar", () =>
        chooseRail(chosenRail() === "narrow" ? "wide" : "narrow"),
      ),
      deed("Show all keys", "help shortcuts keyboard", onKeys),
    ];
  }, [navigate, sections, onKeys]);
}

/**
 * What the page beneath offers: its buttons that name a command by `data-command`, pressed as by hand, so that a page asks before it
 * does something from here too; and the steps of the execution that it is about.
 */
function useOfPage(): readonly Command[] {
  const navigate = useNavigate();
  const client = useQueryClient();
  const { pathname } = useLocation();
  return useMemo(() => {
    const buttons = [...document.querySelectorAll<HTMLElement>("main [data-command]")]
      .filter((button) => !button.matches(":disabled, [aria-disabled=true]"))
      .map((button): Command => {
        const name = button.dataset["command"] ?? "";
        return { key: `page ${name}`, group: "This page", name, act: () => button.click() };
      });
    const id = /^\/executions\/(\d+)$/.exec(pathname)?.[1];
    const steps = id === undefined ? [] : (client.getQueryData<Execution>(["execution", id])?.steps ?? []);
    return [
      ...buttons,
      ...steps.slice(0, 500).map(
        ({ name, status }): Command => ({
          key: `step ${name}`,
          group: "Steps",
          name,
          detail: status.toLowerCase(),
          words: "step",
          act: () => void navigate({ href: `/executions/${id}?step=${encodeURIComponent(name)}` }),
        }),
      ),
    ];
  }, [navigate, client, pathname]);
}

/** Playbooks by a part of their path: opened, and run after the word `run`. */
function usePlaybooks(text: string): readonly Command[] {
  const navigate = useNavigate();
  const { data } = useInfiniteQuery(catalogList({ kind: "playbook" }));
  const isRun = /^run\b/i.test(text);
  return useMemo(
    () =>
      (data?.pages.flatMap(({ resources }) => resources) ?? []).map(
        ({ path, version }): Command => ({
          key: `playbook ${path}`,
          group: "Playbooks",
          name: isRun ? `Run ${path} …` : path,
          detail: `v${version}`,
          words: "run start playbook",
          act: () => void navigate({ href: `/entry/${path}${isRun ? "?tab=run" : ""}` }),
        }),
      ),
    [data, isRun, navigate],
  );
}

/** Executions by the start of their id, or by a part of their playbook's path; the newest ones. */
function useExecutions(text: string): { executions: readonly Command[]; isLooking: boolean } {
  const navigate = useNavigate();
  const isId = /^\d{2,}$/.test(text);
  const isSought = isId || /^[\w/-]{2,}$/.test(text);
  const sought = isId ? { id_prefix: text } : { path_contains: text };
  const { data, isFetching, isPlaceholderData } = useQuery({
    queryKey: ["palette", sought],
    enabled: isSought,
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => api("GET /api/executions", { query: { ...sought, limit: "6" }, signal }),
  });
  const executions = useMemo(
    () =>
      (isSought ? (data?.executions ?? []) : [])
        // The answer to a text before this one may have others: Enter would open one of them.
        .filter(
          ({ execution_id: id, path }) => !isPlaceholderData || (isId ? id.startsWith(text) : path.includes(text)),
        )
        .map(
          ({ execution_id: id, path, status, started_at: at }): Command => ({
            key: `execution ${id}`,
            group: "Executions",
            name: `${path} · ${id}`,
            detail: `${status.toLowerCase()}, ${agoText(Date.parse(at), Date.now())}`,
            act: () => void navigate({ to: "/executions/$executionId", params: { executionId: id } }),
          }),
        ),
    [data, isPlaceholderData, isSought, isId, text, navigate],
  );
  return { executions, isLooking: isSought && isFetching };
}
