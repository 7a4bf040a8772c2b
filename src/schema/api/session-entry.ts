import * as v from "valibot";
import { type ChangedSessions, MeAnswer, SessionsChanged, SessionUser } from "./gateway.ts";

/** A session that is valid. */
export interface KnownSession {
  user: SessionUser;
  /** When it ends in any case, milliseconds since 1970. */
  expiresAt: number;
}

/** An entry of a gateway's cache: what the server said, and when it was asked. */
export interface SessionEntry extends KnownSession {
  /** Milliseconds since 1970. */
  askedAt: number;
}

const Entry = v.object({ user: SessionUser, expires_at: v.number(), asked_at: v.number() });

/** The entry as JSON, for the broker's store. */
export function encodeSession({ user, expiresAt, askedAt }: SessionEntry): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ user, expires_at: expiresAt, asked_at: askedAt }));
}

/** The reverse; undefined for what another program or version has written. */
export function decodeSession(bytes: Uint8Array): SessionEntry | undefined {
  const entry = v.safeParse(Entry, parsed(new TextDecoder().decode(bytes)));
  if (!entry.success) return undefined;
  const { user, expires_at: expiresAt, asked_at: askedAt } = entry.output;
  return { user, expiresAt, askedAt };
}

/** The session that the answer of `GET /api/auth/me` tells of; undefined for what is no such answer. */
export function sessionOfAnswer(body: unknown): KnownSession | undefined {
  const answer = v.safeParse(MeAnswer, body);
  if (!answer.success) return undefined;
  const { expires_at: expiresAt, ...user } = answer.output;
  return { user, expiresAt: Date.parse(expiresAt) };
}

/** What an event of `GET /api/auth/changes` tells of. What is not understood may be about anybody. */
export function changedSessions(text: string): ChangedSessions {
  const change = v.safeParse(SessionsChanged, parsed(text));
  return (change.success ? change.output.tokens : undefined) ?? "all";
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
