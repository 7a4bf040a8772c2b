import { Pool } from "undici";
import { RUN_MAX_MS } from "./candidate.ts";

/** A client of one service, cheap enough to share a core with what it measures. */
export interface HttpClient {
  /** The answer's body as JSON, undefined when it is empty. Rejects when the status is not 2xx. */
  get(path: string): Promise<unknown>;
  post(path: string, body: unknown): Promise<unknown>;
  close(): Promise<void>;
}

/** More than the workflows that any part of the benchmark has in flight on purpose; arrivals beyond it queue here. */
const CONNECTIONS = 256;

/** Opens a client with up to 256 connections, kept alive. */
export function openClient(origin: string): HttpClient {
  const pool = new Pool(origin, { connections: CONNECTIONS, bodyTimeout: RUN_MAX_MS, headersTimeout: RUN_MAX_MS });
  const call = async (method: "GET" | "POST", path: string, body?: unknown): Promise<unknown> => {
    const json =
      body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const answer = await pool.request({ method, path, ...json });
    const text = await answer.body.text();
    if (answer.statusCode >= 300) throw new Error(`${method} ${path} gave ${answer.statusCode}: ${text.slice(0, 500)}`);
    return text === "" ? undefined : JSON.parse(text);
  };
  return {
    get: (path) => call("GET", path),
    post: (path, body) => call("POST", path, body),
    close: () => pool.destroy(),
  };
}
