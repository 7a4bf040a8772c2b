import assert from "node:assert/strict";
import type { Body } from "./api.ts";

/** What a server answered; text that is no JSON object is in `text`. */
export interface Reply {
  status: number;
  body: Body;
}

/** Calls a server in a process of its own, with a token. */
export async function sendTo(
  url: string,
  token: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Reply> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text.startsWith("{") ? (JSON.parse(text) as Body) : { text } };
}

/** The answer of such a call, which must succeed. */
export async function answerOf(
  url: string,
  token: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<Body> {
  const reply = await sendTo(url, token, method, path, body);
  assert.ok(reply.status < 300, `${method} ${path}: ${reply.status} ${JSON.stringify(reply.body)}`);
  return reply.body;
}
