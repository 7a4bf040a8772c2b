import * as v from "valibot";

/** Longest list of commands in one notice; more are split over several notices. A thousand ids are about 20 KB of JSON. */
export const NOTICE_COMMANDS_MAX = 1_000;

/* A positive integer below 2^53, as text. */
const IdSchema = v.pipe(v.string(), v.regex(/^[1-9]\d{0,15}$/));

/**
 * What a server publishes after a commit: that there is something to look up in the database, never the data itself. So a
 * notice that is forged, doubled or late costs a query and changes nothing.
 */
export const NoticeSchema = v.variant("kind", [
  v.object({
    /** Unclaimed commands. */
    kind: v.literal("commands"),
    commandIds: v.pipe(v.array(IdSchema), v.minLength(1), v.maxLength(NOTICE_COMMANDS_MAX)),
  }),
  v.object({
    /** Events were added to an execution, at least up to `lastEventId`. */
    kind: v.literal("execution"),
    executionId: IdSchema,
    lastEventId: IdSchema,
    /** It has ended. */
    ended: v.exactOptional(v.boolean()),
    /** The server that wrote them: it has notified its own watchers. */
    server: v.exactOptional(v.pipe(v.string(), v.maxLength(255))),
  }),
  v.object({
    /** An execution was cancelled: what runs of it is to stop. */
    kind: v.literal("cancel"),
    executionId: IdSchema,
    /** Of its commands those that workers held, with their names; of very many only the first ones. */
    stopped: v.exactOptional(
      v.pipe(
        v.array(v.object({ commandId: IdSchema, worker: v.pipe(v.string(), v.maxLength(255)) })),
        v.maxLength(NOTICE_COMMANDS_MAX),
      ),
    ),
  }),
]);
export type Notice = v.InferOutput<typeof NoticeSchema>;
