-- A path may be paused: nothing of it is started. Columns that may be empty: only the catalog of the database changes, no row is read.
ALTER TABLE "flow"."resource" ADD COLUMN "paused_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "flow"."resource" ADD COLUMN "paused_by" text;--> statement-breakpoint
ALTER TABLE "flow"."resource" ADD COLUMN "pause_reason" text;
