-- What parked commands wait for. A new table: nothing waits for it, and servers of the version before go on without it; they do not wake what
-- is due, and refuse reports of parked commands. Finish the upgrade of all servers and workers before playbooks with `kind: wait` run.
-- The changes to `command` lock it and read it once: it holds open commands alone.
CREATE TABLE "flow"."wait" (
	"command_id" bigint PRIMARY KEY NOT NULL,
	"execution_id" bigint NOT NULL,
	"kind" text NOT NULL,
	"due_at" timestamp (3) with time zone,
	"taken_until" timestamp (3) with time zone,
	CONSTRAINT "wait_kind" CHECK (kind IN ('timer'))
);
--> statement-breakpoint
ALTER TABLE "flow"."command" DROP CONSTRAINT "command_status";--> statement-breakpoint
DROP INDEX "flow"."command_for_cancel";--> statement-breakpoint
CREATE INDEX "wait_for_due" ON "flow"."wait" USING btree ("due_at") WHERE due_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX "command_for_cancel" ON "flow"."command" USING btree ("execution_id") WHERE status IN ('PENDING', 'PAUSED', 'PARKED', 'CLAIMED', 'RUNNING');--> statement-breakpoint
ALTER TABLE "flow"."command" ADD CONSTRAINT "command_status" CHECK (status IN ('PENDING', 'PAUSED', 'PARKED', 'CLAIMED', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED'));