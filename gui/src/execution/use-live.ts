import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { follow, type LiveState } from "../api/live.ts";
import { executionDetail } from "../api/queries.ts";
import { isFinal } from "../parts/status.tsx";

/** However fast events come, the page is read again no more often than this, milliseconds. */
const REFRESH_MS = 700;
/** Without a stream the page is read as often as lists are, milliseconds. */
const CROWDED_MS = 3_000;
/** Where reading takes long, this many times as long passes before the next: the page and the server have other work. */
const REST_FACTOR = 5;

/**
 * An execution, read again as its events come. The stream begins after the newest event that was read with it, so that a long
 * log is not sent a second time.
 */
export function useLiveExecution(executionId: string) {
  const detail = useQuery(executionDetail(executionId));
  const [live, setLive] = useState<LiveState>({ is: "connecting" });
  const client = useQueryClient();
  const { data, dataUpdatedAt } = detail;
  const isOpen = data !== undefined && !isFinal(data.status);
  // A user who was locked out and has logged in again may follow it again.
  const isStopped = live.is === "stopped" && dataUpdatedAt <= live.at;
  useEffect(() => {
    if (!isOpen || isStopped) return undefined;
    const aborter = new AbortController();
    const reader = createReader(() => client.invalidateQueries({ queryKey: ["execution", executionId] }));
    let polling: ReturnType<typeof setInterval> | undefined;
    const known = client.getQueryData(executionDetail(executionId).queryKey)?.last_event_id ?? 0;
    void follow(
      executionId,
      known,
      {
        onEvent: reader.want,
        onState(state) {
          setLive(state);
          clearInterval(polling);
          if (state.is === "crowded") polling = setInterval(reader.want, CROWDED_MS);
          // While the stream was down anything may have happened.
          if (state.is === "live" || state.is === "ended") reader.want();
        },
      },
      aborter.signal,
    );
    return () => {
      aborter.abort();
      clearInterval(polling);
      reader.close();
    };
  }, [executionId, isOpen, isStopped, client]);
  return { detail, live: isOpen ? live : ({ is: "ended" } satisfies LiveState) };
}

/** Reads when it is wanted to, one at a time, with rests in between that grow with how long reading takes. */
function createReader(read: () => Promise<unknown>): { want(): void; close(): void } {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isReading = false;
  let isWanted = false;
  let isClosed = false;
  let restMs = REFRESH_MS / 5;
  const run = async () => {
    timer = undefined;
    isReading = true;
    isWanted = false;
    const began = performance.now();
    await read().catch(() => undefined);
    restMs = Math.max(REFRESH_MS, REST_FACTOR * (performance.now() - began));
    isReading = false;
    if (isWanted) want();
  };
  const want = () => {
    isWanted = true;
    if (!isReading && !isClosed) timer ??= setTimeout(() => void run(), restMs);
  };
  return {
    want,
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}
