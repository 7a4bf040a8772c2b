import { useMutation } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { api } from "../api/client.ts";
import { useIdempotencyKey } from "../api/idempotency.ts";
import { type AgentCall, type CallProgress, callAgent, type StartCall } from "./call-agent.ts";
import { keepCall, type PastCall } from "./history.ts";

/** Longest inputs that are remembered, characters. */
const KEPT_MAX = 4_000;

/** A call of an agent. */
export interface AgentCallRequest {
  /** For people: `tools/list`, or the name of the tool. */
  what: string;
  server: string | undefined;
  workload: JsonObject;
  /** What of it may be shown and remembered. */
  shown: JsonObject;
}

/**
 * Calls an agent or a server, shows the call's progress, and notes it in the browser's history. Leaving the page stops the waiting, not the
 * call.
 */
export function useAgentCall(
  /** `agent`: its path, "" where a server is called itself. */
  { agent, start }: { agent: string; start: StartCall },
  onEnd: (request: AgentCallRequest, call: AgentCall) => void,
) {
  const key = useIdempotencyKey();
  const [progress, setProgress] = useState<CallProgress & { since: number }>();
  const leaving = useRef(new AbortController());
  useEffect(() => {
    leaving.current = new AbortController();
    const { current } = leaving;
    return () => current.abort();
  }, []);
  const call = useMutation({
    mutationFn: async (request: AgentCallRequest) => {
      const since = Date.now();
      let kept: PastCall | undefined;
      const onProgress = (now: CallProgress) => {
        setProgress({ ...now, since });
        if (kept !== undefined) return;
        const { what, server, shown } = request;
        const at = new Date(since).toISOString();
        const workload = JSON.stringify(shown).length > KEPT_MAX ? undefined : shown;
        kept = { executionId: now.executionId, agent, what, server, at, status: "RUNNING", workload };
        keepCall(kept);
      };
      setProgress(undefined);
      const { signal } = leaving.current;
      const ended = await callAgent(start, request.workload, key.of(request.workload), onProgress, signal);
      key.answered();
      if (kept !== undefined) keepCall({ ...kept, status: ended.status });
      return ended;
    },
    onSuccess: (ended, request) => onEnd(request, ended),
  });
  const cancel = useMutation({
    mutationFn: (executionId: string) =>
      api("POST /api/executions/:execution_id/cancel", {
        params: { execution_id: executionId },
        body: { reason: "cancelled in the terminal" },
      }),
  });
  return { call, cancel, progress };
}
