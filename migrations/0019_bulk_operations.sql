-- Operations on many executions: one row each, and one for every execution that it is about. New tables: nothing waits for them, and
-- servers of the version before go on without them.
CREATE TABLE "flow"."bulk" (
	"bulk_id" bigint PRIMARY KEY NOT NULL,
	"action" text NOT NULL,
	"status" text NOT NULL,
	"filter" jsonb NOT NULL,
	"options" jsonb NOT NULL,
	"asked_by" text NOT NULL,
	"user_id" bigint,
	"matched" integer DEFAULT 0 NOT NULL,
	"done" integer DEFAULT 0 NOT NULL,
	"failed" integer DEFAULT 0 NOT NULL,
	"skipped" integer DEFAULT 0 NOT NULL,
	"worker" text,
	"lease_expires_at" timestamp (3) with time zone,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"ended_at" timestamp (3) with time zone,
	CONSTRAINT "bulk_action" CHECK (action IN ('cancel', 'pause', 'resume', 'rerun')),
	CONSTRAINT "bulk_status" CHECK (status IN ('running', 'paused', 'completed', 'cancelled')),
	CONSTRAINT "bulk_counts" CHECK (least(done, failed, skipped) >= 0 AND done + failed + skipped <= matched),
	CONSTRAINT "bulk_lease" CHECK (num_nulls(worker, lease_expires_at) IN (0, 2)),
	CONSTRAINT "bulk_end" CHECK ((ended_at IS NOT NULL) = (status IN ('completed', 'cancelled')))
);
--> statement-breakpoint
CREATE TABLE "flow"."bulk_item" (
	"bulk_id" bigint NOT NULL,
	"execution_id" bigint NOT NULL,
	"state" text DEFAULT 'pending' NOT NULL,
	"code" text,
	"message" text,
	"new_execution_id" bigint,
	CONSTRAINT "bulk_item_pkey" PRIMARY KEY("bulk_id","execution_id"),
	CONSTRAINT "bulk_item_state" CHECK (state IN ('pending', 'begun', 'done', 'failed', 'skipped')),
	CONSTRAINT "bulk_item_why" CHECK ((code IS NULL) = (message IS NULL) AND (code IS NOT NULL OR state <> 'failed'))
);
--> statement-breakpoint
CREATE INDEX "bulk_for_work" ON "flow"."bulk" USING btree ("updated_at") WHERE status = 'running';--> statement-breakpoint
CREATE INDEX "bulk_for_retention" ON "flow"."bulk" USING btree ("ended_at") WHERE ended_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX "bulk_item_for_work" ON "flow"."bulk_item" USING btree ("bulk_id","execution_id") WHERE state IN ('pending', 'begun');--> statement-breakpoint
CREATE INDEX "bulk_item_for_failures" ON "flow"."bulk_item" USING btree ("bulk_id","execution_id") WHERE state = 'failed';