-- A command that is not claimed and whose execution is paused has a status of its own, so that it is not in the indexes of those that may
-- be claimed. What the constraints allowed before they allow still. The table holds open commands: reading it, and building the index
-- anew, takes milliseconds.
ALTER TABLE "flow"."command" DROP CONSTRAINT "command_status";--> statement-breakpoint
ALTER TABLE "flow"."command" DROP CONSTRAINT "command_attempt";--> statement-breakpoint
DROP INDEX "flow"."command_for_cancel";--> statement-breakpoint
CREATE INDEX "command_for_cancel" ON "flow"."command" USING btree ("execution_id") WHERE status IN ('PENDING', 'PAUSED', 'CLAIMED', 'RUNNING');--> statement-breakpoint
ALTER TABLE "flow"."command" ADD CONSTRAINT "command_status" CHECK (status IN ('PENDING', 'PAUSED', 'CLAIMED', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED'));--> statement-breakpoint
ALTER TABLE "flow"."command" ADD CONSTRAINT "command_attempt" CHECK (attempt >= 0 AND (attempt > 0 OR status IN ('PENDING', 'PAUSED', 'CANCELLED')));
