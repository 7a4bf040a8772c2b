import type { Command } from "../schema/words/command.ts";

/** The server as a worker knows it: where commands come from and where their events go (decisions, "Worker protocol"). */
export interface WorkServer {
  /** Asks for commands and waits for the first one, `waitMs` at most. Rejects with the signal's reason when it aborts. */
  claim(request: { limit: number; waitMs: number }, signal: AbortSignal): Promise<ClaimAnswer>;
  /** Sends events, and asks for commands where `claim` says how many. Rejects with the signal's reason when it aborts. */
  report(request: ReportRequest, signal: AbortSignal): Promise<ReportAnswer>;
}

/** A command that is this worker's. */
export interface ClaimedWork {
  command: Command;
  /** Fencing token of the claim. */
  attempt: number;
  /** The secret of the claim: what is asked for in the command's name needs it. Absent where nothing is asked of a server. */
  secret?: string;
}

/** One request with events. */
export interface ReportRequest {
  /** The same over all tries of one request: what was taken already is not taken again. */
  key: string;
  /** Events as JSON texts, in order. */
  events: readonly string[];
  /** Large results of these events, each with the place of its event. */
  attachments: readonly (Attachment & { event: number })[];
  /** Secrets of the claims that the events are of. */
  secrets: readonly string[];
  /** Most commands that the answer may bring; 0: none are wanted. */
  claim: number;
  /** Tries before this one that ended without any answer: their server may have died of the request. */
  unanswered: number;
}

/** A large result that travels with the report of its task, and is stored with it. */
export interface Attachment {
  /** Under which it is stored: of the event's result, or of one of its further fields. */
  ref: string;
  /** JSON text in UTF-8. */
  payload: Uint8Array<ArrayBuffer>;
  /** As its author wrote them. */
  ttl?: string;
  compression?: string;
}

/** The server cannot answer now: trying again helps. */
export interface Unavailable {
  status: "unavailable";
  message: string;
  /** How long the server wants to be left alone, in milliseconds. */
  retryAfterMs?: number;
  /** It accepted the request and failed on it with an internal error: the next attempt may well fail again. */
  isFault?: true;
}

/** Answer to a claim. `unknown`: the server knows no worker of this name; it must register again. */
export type ClaimAnswer =
  | { status: "ok"; commands: ClaimedWork[] }
  | { status: "unknown"; message: string }
  | Unavailable;

/** Answer to a report. */
export type ReportAnswer =
  | { status: "accepted"; duplicate: boolean; commands: ClaimedWork[] }
  /** Nothing was taken: the claims that these events speak of are no longer this worker's. */
  | { status: "lost"; events: { index: number; reason: string }[] }
  /** Nothing was taken: events that no server can take. `indexes` names them; empty: the server does not say which. */
  | { status: "invalid"; message: string; indexes: number[] }
  | Unavailable;
