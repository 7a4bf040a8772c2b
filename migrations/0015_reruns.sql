-- An execution may repeat another one from a step on: it names that one, and the executions whose stored results it refers to. Columns
-- that may be empty: no row is written. Building the indexes and checking the constraint reads the table of executions once, about a
-- second for a million rows, during which nothing is started.
CREATE TABLE "flow"."deleted_execution" (
	"execution_id" bigint PRIMARY KEY NOT NULL,
	"path" text COLLATE "C" NOT NULL,
	"version" integer NOT NULL,
	"status" text NOT NULL,
	"parent_execution_id" bigint,
	"rerun_of" bigint,
	"deleted_at" timestamp (3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "flow"."execution" ADD COLUMN "rerun_of" bigint;--> statement-breakpoint
ALTER TABLE "flow"."execution" ADD COLUMN "rerun_request" json;--> statement-breakpoint
ALTER TABLE "flow"."execution" ADD COLUMN "sealed_under" bigint;--> statement-breakpoint
ALTER TABLE "flow"."execution" ADD COLUMN "refers_to" bigint[];--> statement-breakpoint
CREATE INDEX "execution_for_reruns" ON "flow"."execution" USING btree ("rerun_of","execution_id") WHERE rerun_of IS NOT NULL;--> statement-breakpoint
CREATE INDEX "execution_for_references" ON "flow"."execution" USING gin ("refers_to") WHERE refers_to IS NOT NULL;--> statement-breakpoint
ALTER TABLE "flow"."execution" ADD CONSTRAINT "execution_rerun" CHECK (rerun_of < execution_id AND (rerun_request IS NULL OR rerun_of IS NOT NULL));