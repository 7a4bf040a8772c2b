import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api } from "../../api/client.ts";
import type { Validation } from "../../api/types.ts";

/** How long to wait after the last key press before errors are shown, milliseconds. */
const PAUSE_MS = 400;

/** What the server says of a text. */
export interface TextState {
  /** Of the text as it is now; undefined while it is not known. */
  validation: Validation | undefined;
  /** For this text or the one before: what to show meanwhile. */
  last: Validation | undefined;
  error: Error | null;
}

/** Validates a text as it is written: after a pause; requests for an older text are aborted. */
export function useValidation(text: string): TextState {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const query = useQuery({
    queryKey: ["validation", settled],
    enabled: settled.trim() !== "",
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 10_000,
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => validated(settled, signal),
  });
  const isCurrent = settled === text && !query.isPlaceholderData && query.isSuccess;
  return { validation: isCurrent ? query.data : undefined, last: query.data, error: query.error };
}

/** Asks the server what registering a text would say of it. */
export function validated(content: string, signal?: AbortSignal): Promise<Validation> {
  return api("POST /api/catalog/validate", { body: { content }, ...(signal !== undefined && { signal }) });
}
