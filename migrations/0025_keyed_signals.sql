-- Signals that are sent to everyone who waits for them, and what parked commands wait for, so that a signal finds them. A new table, and columns
-- without values: `wait`, which holds what waits now, is locked and read once. Servers of the version before write no name of a signal, so
-- what they park meanwhile is reached by signals to its execution alone: finish the upgrade of all of them before the new call is used.
CREATE TABLE "flow"."signal" (
	"signal_id" bigint PRIMARY KEY NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"key" text COLLATE "C" NOT NULL,
	"sender_id" text COLLATE "C",
	"data" json,
	"sent_by" text NOT NULL,
	"user_id" bigint,
	"state" text DEFAULT 'sending' NOT NULL,
	"reached" integer DEFAULT 0 NOT NULL,
	"walked_to" bigint,
	"taken_by" bigint,
	"lease_expires_at" timestamp (3) with time zone,
	"kept_until" timestamp (3) with time zone NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "signal_state" CHECK (state IN ('sending', 'kept', 'done')),
	CONSTRAINT "signal_reached" CHECK (reached >= 0)
);
--> statement-breakpoint
ALTER TABLE "flow"."wait" DROP CONSTRAINT "wait_kind";--> statement-breakpoint
ALTER TABLE "flow"."wait" ADD COLUMN "name" text COLLATE "C";--> statement-breakpoint
ALTER TABLE "flow"."wait" ADD COLUMN "key" text COLLATE "C";--> statement-breakpoint
ALTER TABLE "flow"."wait" ADD COLUMN "is_looked" boolean DEFAULT true NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX "signal_for_sender" ON "flow"."signal" USING btree ("name","key","sender_id") WHERE sender_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "signal_for_work" ON "flow"."signal" USING btree ("signal_id") WHERE state = 'sending';--> statement-breakpoint
CREATE INDEX "signal_for_wait" ON "flow"."signal" USING btree ("name","key","signal_id") WHERE state <> 'done';--> statement-breakpoint
CREATE INDEX "signal_for_retention" ON "flow"."signal" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "wait_for_signal" ON "flow"."wait" USING btree ("name","key","execution_id") WHERE name IS NOT NULL;--> statement-breakpoint
CREATE INDEX "wait_for_look" ON "flow"."wait" USING btree ("command_id") WHERE NOT is_looked;--> statement-breakpoint
ALTER TABLE "flow"."wait" ADD CONSTRAINT "wait_signal" CHECK (num_nulls(name, key) IN (0, 2));--> statement-breakpoint
ALTER TABLE "flow"."wait" ADD CONSTRAINT "wait_kind" CHECK (kind IN ('timer', 'signal', 'retry'));--> statement-breakpoint
UPDATE "flow"."wait" AS w SET "name" = e.meta -> 'wait' ->> 'name', "key" = coalesce(e.meta -> 'wait' ->> 'key', '')
FROM "flow"."event" AS e
WHERE w.kind = 'signal' AND e.execution_id = w.execution_id AND e.command_id = w.command_id AND e.event_type = 'command.parked'
  AND e.meta -> 'wait' ->> 'name' IS NOT NULL;
