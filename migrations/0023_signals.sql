-- Parked commands may wait for signals. The table is locked and read once: it holds what waits now. Servers and workers of the version before
-- refuse reports of commands that wait for a signal: finish the upgrade of all of them before playbooks with `signal:` run.
ALTER TABLE "flow"."wait" DROP CONSTRAINT "wait_kind";--> statement-breakpoint
ALTER TABLE "flow"."wait" ADD CONSTRAINT "wait_kind" CHECK (kind IN ('timer', 'signal'));