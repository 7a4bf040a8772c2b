-- Bulk operations know the idempotency key of their call, and what the audit log says of their caller. Both tables were made one version
-- before and their rows are deleted after 30 days: of 1,000,000 items the index takes a second, in which operations stand still.
-- Servers of the version before go on: what they write leaves the new columns empty.
DROP INDEX "flow"."bulk_for_work";--> statement-breakpoint
ALTER TABLE "flow"."bulk" ADD COLUMN "asker" jsonb DEFAULT '{}'::jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "flow"."bulk" ADD COLUMN "caller" text;--> statement-breakpoint
ALTER TABLE "flow"."bulk" ADD COLUMN "idempotency_key" text;--> statement-breakpoint
ALTER TABLE "flow"."bulk" ADD COLUMN "body_sha256" text;--> statement-breakpoint
CREATE UNIQUE INDEX "bulk_for_idempotency" ON "flow"."bulk" USING btree ("caller","idempotency_key") WHERE idempotency_key IS NOT NULL;--> statement-breakpoint
CREATE INDEX "bulk_item_for_started" ON "flow"."bulk_item" USING btree ("bulk_id","execution_id") WHERE new_execution_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "bulk_for_work" ON "flow"."bulk" USING btree ("updated_at") WHERE status = 'running' OR worker IS NOT NULL;--> statement-breakpoint
ALTER TABLE "flow"."bulk" ADD CONSTRAINT "bulk_idempotency" CHECK (num_nulls(caller, idempotency_key, body_sha256) IN (0, 3));