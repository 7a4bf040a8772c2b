import * as v from "valibot";
import { type Notice, NoticeSchema } from "../../schema/words/notice.ts";

/** Subject of notices of commands. The stream keeps what comes here for servers that were away. */
export const COMMANDS_SUBJECT = "flow.commands.issued";
/** Subject of all other notices. They are not stored: a server that was disconnected reads the database. */
export const EXECUTIONS_SUBJECT = "flow.executions.changed";

/** Most notices in one message, and most bytes of a message from flow; a longer one comes from elsewhere. */
const NOTICES_MAX = 256;
const MESSAGE_BYTES_MAX = 65_536;

/** Most ids that are sent at once: then no message reaches the limits above. */
export const SENT_IDS_MAX = NOTICES_MAX;

const MessageSchema = v.object({
  /** The publishing process, which ignores its own messages. */
  from: v.pipe(v.string(), v.maxLength(64)),
  notices: v.pipe(v.array(NoticeSchema), v.maxLength(NOTICES_MAX)),
});

/** One or two messages with these notices, by subject. */
export function encodeNotices(from: string, notices: readonly Notice[]): { subject: string; text: string }[] {
  const messages = [
    { subject: COMMANDS_SUBJECT, notices: notices.filter(({ kind }) => kind === "commands") },
    { subject: EXECUTIONS_SUBJECT, notices: notices.filter(({ kind }) => kind !== "commands") },
  ];
  return messages
    .filter((message) => message.notices.length > 0)
    .map(({ subject, notices: said }) => ({ subject, text: JSON.stringify({ from, notices: said }) }));
}

/** The notices of a message, or the reason, as text, why it is not from flow. Any client of NATS can send anything. */
export function decodeNotices(data: Uint8Array): v.InferOutput<typeof MessageSchema> | string {
  if (data.length > MESSAGE_BYTES_MAX) return `it has ${data.length} bytes`;
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(data));
  } catch {
    return "it is no JSON";
  }
  const result = v.safeParse(MessageSchema, json, { abortEarly: true });
  return result.success ? result.output : `'${v.getDotPath(result.issues[0]) ?? ""}' is not what it should be`;
}
