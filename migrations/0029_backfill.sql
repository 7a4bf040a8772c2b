-- Bulk operations that make up for times of a schedule. A column without values, and a word more in a check of a small table, which is read
-- once: nothing waits for it longer than a moment. A server of the version before that takes such an operation would skip its times: finish the
-- upgrade of all of them before one is begun.
ALTER TABLE "flow"."bulk" DROP CONSTRAINT "bulk_action";--> statement-breakpoint
ALTER TABLE "flow"."bulk_item" ADD COLUMN "due_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "flow"."bulk" ADD CONSTRAINT "bulk_action" CHECK (action IN ('cancel', 'pause', 'resume', 'rerun', 'backfill'));