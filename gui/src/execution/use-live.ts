import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { follow, type LiveState } from "../api/live.ts";
import { executionDetail } from "../app/queries.ts";
import { isFinal } from "../parts/status.tsx";

/** However fast events come, the page is read again no more often than this, milliseconds. */
const REFRESH_MS = 700;

/**
 * An execution, read again as its events come. The stream is opened once it is known how far the log is, so that a long log is
 * not sent a second time.
 */
export function useLiveExecution(executionId: string) {
  const detail = useQuery(executionDetail(executionId));
  const [live, setLive] = useState<LiveState>({ is: "connecting" });
  const client = useQueryClient();
  const status = detail.data?.status;
  const isOpen = status !== undefined && !isFinal(status);
  const lastEvent = useRef(0);
  useEffect(() => {
    if (!isOpen) return undefined;
    const aborter = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const refresh = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        void client.invalidateQueries({ queryKey: ["execution", executionId] });
      }, REFRESH_MS);
    };
    void follow(
      executionId,
      lastEvent.current,
      {
        onEvents: (events) => {
          lastEvent.current = events.at(-1)?.event_id ?? lastEvent.current;
          refresh();
        },
        onState: (state) => {
          setLive(state);
          if (state.is === "ended") refresh();
        },
      },
      aborter.signal,
    );
    return () => {
      aborter.abort();
      clearTimeout(timer);
    };
  }, [executionId, isOpen, client]);
  return { detail, live: isOpen ? live : ({ is: "ended" } satisfies LiveState) };
}
