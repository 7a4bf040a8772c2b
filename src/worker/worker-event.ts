import type { ClaimedWork } from "../ports/work-server.ts";

/** Events for the worker's operators: the role turns them into log lines and counters. */
export type WorkerEvent =
  /** A command ended; `given up`: its claim was lost, it was cancelled, or the worker had to stop. */
  | { type: "command.ended"; work: ClaimedWork; durationMs: number; outcome: "reported" | "given up" }
  | { type: "claim.given_up"; work: ClaimedWork; why: string }
  /** The server could not be asked, for the `tries`-th time in a row. */
  | { type: "server.unavailable"; doing: "claiming" | "reporting"; tries: number; delayMs: number; message: string }
  /** It answers again. */
  | { type: "server.back"; doing: "claiming" | "reporting"; tries: number }
  /** The server refused events as malformed: the command was failed instead. A fault of this program. */
  | { type: "report.invalid"; work: ClaimedWork; message: string }
  /** A promise that must not reject has rejected. */
  | { type: "fault"; doing: string; error: unknown; work?: ClaimedWork };
