import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { type Answer, api } from "./client.ts";

/** A trigger of a list, with its last and next fires. */
export type TriggerItem = Answer<"GET /api/triggers">["triggers"][number];
/** One trigger, with what it fires for. */
export type Trigger = Answer<"GET /api/triggers/:trigger_id">;
/** What a trigger has fired, or should have. */
export type Fire = Answer<"GET /api/triggers/:trigger_id/fires">["fires"][number];

/** What became of a delivery of a webhook. */
export type Delivery = Answer<"GET /api/triggers/:trigger_id/deliveries">["deliveries"][number];

/** How often lists of triggers look for news, milliseconds. */
const TRIGGERS_MS = 10_000;

/** The triggers that fire next. */
export function nextTriggers(limit: number) {
  return queryOptions({
    queryKey: ["triggers", "next", limit],
    queryFn: ({ signal }) => api("GET /api/triggers", { query: { sort: "next", limit: String(limit) }, signal }),
    refetchInterval: TRIGGERS_MS,
    retry: false,
  });
}

/** What triggers are narrowed to. */
export interface TriggerFilters {
  path?: string | undefined;
  kind?: TriggerItem["kind"] | undefined;
  enabled?: "true" | "false" | undefined;
}

/** Triggers by path and name, page by page. */
export function triggerList(filters: TriggerFilters) {
  const asked = Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== undefined));
  return infiniteQueryOptions({
    queryKey: ["triggers", "list", asked],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) =>
      api("GET /api/triggers", { query: { ...asked, ...(pageParam !== null && { cursor: pageParam }) }, signal }),
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: TRIGGERS_MS,
    placeholderData: keepPreviousData,
  });
}

/** One trigger. */
export function triggerDetail(triggerId: string) {
  return queryOptions({
    queryKey: ["triggers", "one", triggerId],
    queryFn: ({ signal }) => api("GET /api/triggers/:trigger_id", { params: { trigger_id: triggerId }, signal }),
    refetchInterval: TRIGGERS_MS,
  });
}

/** What a trigger has fired, newest first, page by page. */
export function fireList(triggerId: string, status: Fire["status"] | undefined) {
  return infiniteQueryOptions({
    queryKey: ["triggers", "fires", triggerId, status],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) =>
      api("GET /api/triggers/:trigger_id/fires", {
        params: { trigger_id: triggerId },
        query: { ...(status !== undefined && { status }), ...(pageParam !== null && { cursor: pageParam }) },
        signal,
      }),
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: TRIGGERS_MS,
    placeholderData: keepPreviousData,
  });
}

/** The last deliveries of a webhook, newest first, page by page. */
export function deliveryList(triggerId: string, isRefused: boolean) {
  return infiniteQueryOptions({
    queryKey: ["triggers", "deliveries", triggerId, isRefused],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) =>
      api("GET /api/triggers/:trigger_id/deliveries", {
        params: { trigger_id: triggerId },
        query: {
          limit: "20",
          ...(isRefused && { refused: "true" }),
          ...(pageParam !== null && { cursor: pageParam }),
        },
        signal,
      }),
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: TRIGGERS_MS,
    placeholderData: keepPreviousData,
  });
}

/** As many times of a schedule are asked for at once. */
const NEXT_MAX = 1_000;

/** The times of a schedule after a moment; `isWhole`: those before `until` are all of them. */
export function timesBetween(triggerId: string, from: number, until: number) {
  return queryOptions({
    queryKey: ["triggers", "times", triggerId, from, until],
    queryFn: async ({ signal }) => {
      const query = { n: String(NEXT_MAX), from: new Date(from).toISOString() };
      const { next } = await api("GET /api/triggers/:trigger_id/next", {
        params: { trigger_id: triggerId },
        query,
        signal,
      });
      const times = next.map((time) => Date.parse(time)).filter((at) => at < until);
      return { times, isWhole: times.length < NEXT_MAX };
    },
    placeholderData: keepPreviousData,
  });
}

/** Pages of fires that are read for a month. */
const PAGES_MAX = 4;

/** What a trigger has fired since a moment, newest first; `isWhole`: it is all of it. */
export function firesSince(triggerId: string, since: number) {
  return queryOptions({
    queryKey: ["triggers", "since", triggerId, since],
    queryFn: async ({ signal }) => {
      const fires: Fire[] = [];
      let cursor: string | null = null;
      for (let page = 0; page < PAGES_MAX; page += 1) {
        const answer: Answer<"GET /api/triggers/:trigger_id/fires"> = await api("GET /api/triggers/:trigger_id/fires", {
          params: { trigger_id: triggerId },
          query: { limit: "500", ...(cursor !== null && { cursor }) },
          signal,
        });
        fires.push(...answer.fires);
        cursor = answer.next_cursor;
        const last = fires.at(-1);
        if (cursor === null || (last !== undefined && Date.parse(last.fired_at) < since))
          return { fires, isWhole: true };
      }
      return { fires, isWhole: false };
    },
    refetchInterval: TRIGGERS_MS,
    placeholderData: keepPreviousData,
  });
}
