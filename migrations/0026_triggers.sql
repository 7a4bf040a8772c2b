-- Triggers, their fires, and ends of executions that a trigger watches. New tables: nothing waits for them. The catalog gets a kind of document
-- more; both of its tables are locked and read once, some 10 ms for 10,000 versions without their texts. The index on executions has an entry for
-- those that a trigger has started, none at first: building it reads the table once, a second for a million rows, in which no execution begins
-- or ends. Servers of the version before go on: they fire nothing, and do not tell the end of an execution to a trigger that watches it.
CREATE TABLE "flow"."trigger" (
	"trigger_id" bigint PRIMARY KEY NOT NULL,
	"document" text COLLATE "C" NOT NULL,
	"path" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"kind" text NOT NULL,
	"definition" json NOT NULL,
	"version" integer NOT NULL,
	"user_id" bigint,
	"address" text COLLATE "C",
	"enabled" boolean DEFAULT true NOT NULL,
	"active_since" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"counted_from" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"next_due_at" timestamp (3) with time zone,
	"wake_at" timestamp (3) with time zone,
	"taken_by" text,
	"last_fire_at" timestamp (3) with time zone,
	"decided_by" text,
	"decided_until" timestamp (3) with time zone,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "trigger_kind" CHECK (kind IN ('schedule', 'webhook', 'execution', 'nats', 'signal')),
	CONSTRAINT "trigger_due" CHECK (next_due_at IS NULL OR (enabled AND kind = 'schedule')),
	CONSTRAINT "trigger_decided" CHECK (num_nulls(decided_by, decided_until) IN (0, 2))
);
--> statement-breakpoint
CREATE TABLE "flow"."trigger_fire" (
	"fire_id" bigint PRIMARY KEY NOT NULL,
	"trigger_id" bigint NOT NULL,
	"key" text COLLATE "C" NOT NULL,
	"due_at" timestamp (3) with time zone NOT NULL,
	"status" text NOT NULL,
	"execution_id" bigint,
	"reason" text,
	"input" json,
	"waits" boolean DEFAULT false NOT NULL,
	"always" boolean DEFAULT false NOT NULL,
	"cause_id" bigint,
	"wake_at" timestamp (3) with time zone,
	"fired_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "trigger_fire_status" CHECK (status IN ('started', 'queued', 'skipped', 'missed', 'failed')),
	CONSTRAINT "trigger_fire_started" CHECK ((execution_id IS NOT NULL) = (status = 'started')),
	CONSTRAINT "trigger_fire_queued" CHECK ((wake_at IS NOT NULL) = (status = 'queued')),
	CONSTRAINT "trigger_fire_reason" CHECK (reason IS NOT NULL OR status IN ('started', 'queued'))
);
--> statement-breakpoint
CREATE TABLE "flow"."watched_end" (
	"execution_id" bigint PRIMARY KEY NOT NULL,
	"wake_at" timestamp (3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "flow"."catalog" DROP CONSTRAINT "catalog_kind";--> statement-breakpoint
ALTER TABLE "flow"."resource" DROP CONSTRAINT "resource_kind";--> statement-breakpoint
CREATE UNIQUE INDEX "trigger_path_name" ON "flow"."trigger" USING btree ("path","name");--> statement-breakpoint
CREATE UNIQUE INDEX "trigger_address" ON "flow"."trigger" USING btree ("kind","address") WHERE address IS NOT NULL;--> statement-breakpoint
CREATE INDEX "trigger_for_document" ON "flow"."trigger" USING btree ("document");--> statement-breakpoint
CREATE INDEX "trigger_for_due" ON "flow"."trigger" USING btree ("wake_at") WHERE wake_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX "trigger_for_kind" ON "flow"."trigger" USING btree ("kind","trigger_id") WHERE enabled AND kind <> 'schedule';--> statement-breakpoint
CREATE UNIQUE INDEX "trigger_fire_key" ON "flow"."trigger_fire" USING btree ("trigger_id","key");--> statement-breakpoint
CREATE INDEX "trigger_fire_for_list" ON "flow"."trigger_fire" USING btree ("trigger_id","fire_id");--> statement-breakpoint
CREATE INDEX "trigger_fire_for_work" ON "flow"."trigger_fire" USING btree ("wake_at","fire_id") WHERE wake_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX "trigger_fire_for_queue" ON "flow"."trigger_fire" USING btree ("trigger_id","due_at","fire_id") WHERE status = 'queued';--> statement-breakpoint
CREATE INDEX "trigger_fire_for_execution" ON "flow"."trigger_fire" USING btree ("execution_id") WHERE execution_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "watched_end_for_work" ON "flow"."watched_end" USING btree ("wake_at");--> statement-breakpoint
CREATE INDEX "execution_for_overlap" ON "flow"."execution" USING btree ("started_id") WHERE started_kind = 'trigger' AND ended_at IS NULL;--> statement-breakpoint
ALTER TABLE "flow"."catalog" ADD CONSTRAINT "catalog_kind" CHECK (kind IN ('playbook', 'agent', 'mcp', 'trigger'));--> statement-breakpoint
ALTER TABLE "flow"."resource" ADD CONSTRAINT "resource_kind" CHECK (kind IN ('playbook', 'agent', 'mcp', 'trigger'));